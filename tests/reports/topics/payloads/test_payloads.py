"""What another payload is worth: the ratio to the float32 tensor by the same protocol, with its interval."""

from pathlib import Path

from reports.study.study import load_study
from reports.summary.summary import Way
from reports.topics.payloads.payloads import payload_pairs, payloads_finding, payloads_map, protocols_map
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.example import MS
from tests.reports.open_load import texts
from tests.reports.strangers import GRPC, a_book, run, stranger

SLOW, FAST = [40.0, 40.4, 39.6], [10.0, 10.1, 9.9]


def book(times: dict[str, list[float]], level: int = 16) -> Book:
    made = Book()
    for name, values in times.items():
        for repeat, ms in enumerate(values, 1):
            made.add(name, 1, level, {"w0": [round(ms * MS)] * 160}, repeat=repeat)
    return made


def test_each_payload_stands_over_the_tensor_of_its_protocol(tmp_path: Path) -> None:
    times = {
        "onnx-http": SLOW, "onnx-grpc": SLOW, "onnx-jpeg-grpc": FAST, "onnx-uint8-http": [20.0, 20.2, 19.8],
        "gateway-http": FAST, "pytorch-http": FAST,
    }  # fmt: skip
    study = load_study(book(times).write(tmp_path))
    table = payloads_map(study)
    assert table.heads == ("payload", "users", "batch 1")
    told = {row[0].text: row[2].text for row in table.rows}
    assert {name: text.split()[1] for name, text in told.items()} == {
        "onnx-jpeg-grpc / onnx-grpc": "4.000×",
        "onnx-uint8-http / onnx-http": "2.000×",
        "gateway-http / onnx-http": "4.000×",
    }
    assert told["onnx-jpeg-grpc / onnx-grpc"].startswith("▲ 4.000× (3.9")
    assert [row[1].text for row in table.rows] == ["16"] * 3
    assert payloads_finding(study).startswith("Images per second at batch 1 by payload: ")
    assert "onnx-jpeg-grpc / onnx-grpc 4.000× (3.9" in payloads_finding(study)
    assert row(study, "Payload") == payloads_finding(study)


def test_without_a_tensor_beside_it_nothing_is_said(tmp_path: Path) -> None:
    study = load_study(
        book({"onnx-jpeg-grpc": FAST, "onnx-http": SLOW, "pytorch-http": FAST}).write(tmp_path)
    )
    assert payload_pairs(study) == {}
    assert payloads_map(study).rows == ()
    assert payloads_finding(study) == ""


def test_one_run_has_a_ratio_without_an_interval(tmp_path: Path) -> None:
    study = load_study(book({"onnx-jpeg-grpc": [10.0], "onnx-grpc": [30.0]}).write(tmp_path))
    assert texts(payloads_map(study)) == [["onnx-jpeg-grpc / onnx-grpc", "16", "3.00×"]]
    assert payloads_finding(study).endswith(
        "grpc / onnx-grpc 3.00× with 16 users; "
        "unconfirmed: one run per cell; rerun with --repeats 5 to confirm."
    )
    alone = load_study(book({"onnx-jpeg-grpc": FAST, "onnx-grpc": SLOW}, level=1).write(tmp_path / "alone"))
    assert payloads_finding(alone).endswith(") with one user.")


def test_the_protocols_of_each_payload_are_a_pair_of_their_own(tmp_path: Path) -> None:
    times = {"onnx-http": SLOW, "onnx-grpc": FAST, "onnx-jpeg-http": FAST, "onnx-jpeg-grpc": FAST}
    table = protocols_map(load_study(book(times).write(tmp_path)))
    assert [(row[0].text, row[2].text.split()[-2]) for row in table.rows] == [
        ("onnx", "4.000×"),
        ("onnx-jpeg", "1.000×"),
    ]


def of(**endpoints: dict[str, str]) -> Book:
    """Endpoints of a user's own, three repeats each, a tensor's slow and all others fast."""
    made = a_book()
    for name, planned in endpoints.items():
        told = stranger(made, name, **planned)
        run(made, name, told, SLOW if told["payload"] == "fp32" else FAST, level=16)
    return made


TENSOR, JPEG = {"payload": "fp32"}, {"payload": "jpeg", "model": "siglip_jpeg"}


def test_payloads_are_compared_within_a_space_and_a_server(tmp_path: Path) -> None:
    elsewhere, other = {"server": "gpu:9000"}, {"space": "clip"}
    made = of(
        plain=TENSOR, pictures=JPEG, far=JPEG | elsewhere, another=JPEG | other, spoken=JPEG | GRPC
    )  # fmt: skip
    study = load_study(made.write(tmp_path))
    assert payload_pairs(study) == {"pictures / plain": (Way("plain"), Way("pictures"))}
    assert texts(payloads_map(study))[0][2].startswith("▲ 4.000× (")


def test_of_two_tensors_ways_none_is_the_one_to_compare(tmp_path: Path) -> None:
    made = of(plain=TENSOR, again=TENSOR | {"codec": "v2-json"}, pictures=JPEG)
    assert payload_pairs(load_study(made.write(tmp_path))) == {}


def test_a_text_is_no_payload_in_place_of_a_picture(tmp_path: Path) -> None:
    made = of(plain=TENSOR, words={"payload": "text"}, noise={"payload": "random"})
    assert payload_pairs(load_study(made.write(tmp_path))) == {}
