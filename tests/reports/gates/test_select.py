"""Which cells a threshold is of, which two a ratio is of, and names that the study cannot have."""

import pytest

from reports.gates.require import GateError
from reports.gates.select import Planned, cells_of, check_names, pairs_of, planned_cell, unpaired
from reports.gates.thresholds import Gates, parse_gates
from reports.ledger.axes import of_trait
from tests.reports.builder import Book
from tests.reports.gates.book import require


def planned() -> dict[str, Planned]:
    """Two backends by two protocols, floors, and one way over a link."""
    book = Book()
    for backend in ("onnx", "trt"):
        for protocol in ("http", "grpc"):
            for batch in (1, 8):
                book.plan(f"{backend}-{protocol}", batch, 1)
    book.plan("onnx-http", 1, 1, axes={"link": "wan", "variant": "wan"})
    book.plan("onnx-http-floor", 1, 1)
    return {entry["cell"]: planned_cell(entry) for entry in book.header["plan"]}


def gates(text: str, **fields: str) -> Gates:
    return parse_gates(require(text, **fields), "thresholds.toml")


def cells(**fields: str) -> list[str]:
    return cells_of(gates("latency_p99_ms <= 1", **fields).thresholds[0], planned())


def pairs(text: str, **fields: str) -> list[tuple[str, str]]:
    return pairs_of(gates(text, of="'images_per_s'", **fields).thresholds[0], planned())


def test_all_cells_but_floors_without_a_choice() -> None:
    assert cells() == [cell for cell in planned() if "floor" not in cell]
    assert len(cells()) == 9


def test_choices_are_all_to_be_met() -> None:
    assert cells(endpoint="'*-grpc'", batch="[8, 16]") == ["onnx-grpc/b8/c1", "trt-grpc/b8/c1"]
    assert cells(cell="'trt-*/b1/*'") == ["trt-http/b1/c1", "trt-grpc/b1/c1"]
    assert cells(link="'wan'") == ["onnx-http/b1/c1/wan"]
    assert len(cells(link="''")) == 8


@pytest.mark.parametrize("choice", [{"endpoint": "'*-floor'"}, {"cell": "'*floor*'"}, {"backend": "'null'"}])
def test_floors_are_chosen_by_name_alone(choice: dict[str, str]) -> None:
    assert cells(**choice) == ["onnx-http-floor/b1/c1"]


def test_a_ratio_is_of_cells_alike_in_all_but_the_endpoint() -> None:
    assert pairs("onnx-grpc / onnx-http >= 1") == [
        ("onnx-grpc/b1/c1", "onnx-http/b1/c1"),
        ("onnx-grpc/b8/c1", "onnx-http/b8/c1"),
    ]
    assert pairs("onnx-grpc / onnx-http >= 1", batch="8") == [("onnx-grpc/b8/c1", "onnx-http/b8/c1")]
    assert pairs("onnx-http / onnx-http-floor >= 1") == [("onnx-http/b1/c1", "onnx-http-floor/b1/c1")]
    assert pairs("onnx-http-floor / onnx-http >= 1") == [("onnx-http-floor/b1/c1", "onnx-http/b1/c1")]


def test_a_star_stands_for_the_same_on_both_sides() -> None:
    assert pairs("*-grpc / *-http >= 1", batch="1") == [
        ("onnx-grpc/b1/c1", "onnx-http/b1/c1"),
        ("trt-grpc/b1/c1", "trt-http/b1/c1"),
    ]


def test_cells_can_be_named_in_whole() -> None:
    assert pairs("onnx-http/b8/c1 / onnx-http/b1/c1 >= 1") == [("onnx-http/b8/c1", "onnx-http/b1/c1")]
    assert pairs("*/b8/c1 / */b1/c1 >= 1", protocol="'grpc'") == [
        ("onnx-grpc/b8/c1", "onnx-grpc/b1/c1"),
        ("trt-grpc/b8/c1", "trt-grpc/b1/c1"),
    ]


@pytest.mark.parametrize("name", ["batch", "load", "level", "arrivals", *of_trait("gated")])
def test_the_two_cells_of_a_ratio_are_alike_in_whatever_they_are_chosen_by(name: str) -> None:
    one: Planned = next(iter(planned().values()))
    made = {
        f"{way}{number}": {**one, "endpoint": way, name: value}
        for way, order in (("grpc", 1), ("http", -1))
        for number, value in list(enumerate((one[name], "other", 7)))[::order]
    }
    ratio = gates("grpc / http >= 1", of="'images_per_s'").thresholds[0]
    assert pairs_of(ratio, made) == [(f"grpc{number}", f"http{number}") for number in range(3)]


def lonely(text: str, **fields: str) -> list[tuple[str, str]]:
    whole = {name: entry for name, entry in planned().items() if name != "onnx-http/b8/c1"}
    return unpaired(gates(text, of="'images_per_s'", **fields).thresholds[0], whole)


def test_a_cell_without_the_other_of_its_ratio_is_missed_on_either_side() -> None:
    gone, wan = ("onnx-grpc/b8/c1", "onnx-http/b8/c1"), ("onnx-grpc/b1/c1/wan", "onnx-http/b1/c1/wan")
    assert lonely("onnx-grpc / onnx-http >= 1") == [gone, wan]
    assert lonely("onnx-http / onnx-grpc >= 1") == [gone[::-1], wan[::-1]]
    assert lonely("*-grpc / *-http >= 1") == [gone, wan]
    assert lonely("trt-grpc / trt-http >= 1") == []
    assert lonely("*/b8/c1 / */b1/c1 >= 1") == [("onnx-http/b8/c1", "onnx-http/b1/c1")]


def test_what_a_ratio_misses_is_chosen_as_its_cells_are() -> None:
    gone, wan = ("onnx-grpc/b8/c1", "onnx-http/b8/c1"), ("onnx-grpc/b1/c1/wan", "onnx-http/b1/c1/wan")
    assert lonely("onnx-grpc / onnx-http >= 1", link="''") == [gone]
    assert lonely("onnx-grpc / onnx-http >= 1", protocol="'grpc'") == [gone, wan]
    assert lonely("onnx-grpc / onnx-http >= 1", protocol="'http'") == []
    assert lonely("onnx-grpc / onnx-http >= 1", batch="1", link="''") == []


def test_an_endpoint_that_was_not_planned_is_not_missed() -> None:
    book = Book()
    for endpoint in ("onnx-http", "onnx-grpc", "pytorch-http"):
        book.plan(endpoint, 1, 1)
    cells = {entry["cell"]: planned_cell(entry) for entry in book.header["plan"]}
    ratio = gates("*-grpc / *-http >= 1", of="'images_per_s'").thresholds[0]
    assert pairs_of(ratio, cells) == [("onnx-grpc/b1/c1", "onnx-http/b1/c1")]
    assert unpaired(ratio, cells) == []


def test_parts_of_one_schedule_are_a_pair_whatever_their_shares() -> None:
    book = Book()
    for rate in (50, 100):
        for endpoint, share in (("onnx-http", 0.9), ("onnx-grpc", 0.1)):
            axes = {"together": f"split r{rate}", "split": share, "variant": f"split-{share:g}"}
            book.plan(endpoint, 1, share * rate, axes=axes)
    cells = {entry["cell"]: planned_cell(entry) for entry in book.header["plan"]}
    ratio = gates("*-grpc / *-http >= 1", of="'images_per_s'").thresholds[0]
    names = list(cells)
    assert pairs_of(ratio, cells) == [(names[1], names[0]), (names[3], names[2])]
    assert unpaired(ratio, cells) == []


@pytest.mark.parametrize(
    ("text", "fields", "said"),
    [
        (
            "failures <= 1",
            {"endpoint": "'onnx-htpp'"},
            "endpoint 'onnx-htpp': the study has none such; did you",
        ),
        (
            "failures <= 1",
            {"backend": "'zzz*'"},
            "backend 'zzz*': the study has none such; it has onnx, trt, null.",
        ),
        ("failures <= 1", {"channels": "'4'"}, "channels '4': the study has none such; it has none at all."),
        (
            "onnx-gprc / onnx-http >= 1",
            {"of": "'images_per_s'"},
            "require 'onnx-gprc': the study has none such",
        ),
        (
            "onnx-grpc / onnx-htpp >= 1",
            {"of": "'images_per_s'"},
            "require 'onnx-htpp': the study has none such",
        ),
    ],
)
def test_a_name_that_the_study_cannot_have_is_refused(text: str, fields: dict[str, str], said: str) -> None:
    with pytest.raises(GateError) as error:
        check_names(gates(text, **fields), planned())
    assert str(error.value).startswith(f"thresholds.toml: threshold 1: {said}")


def test_names_that_are_known_though_not_planned_are_no_typo() -> None:
    check_names(gates("failures <= 1", endpoint="'pytorch-http'"), planned(), ["pytorch-http"])
    check_names(gates("failures <= 1", batch="64", cell="'none'", link="''", channels="'*'"), planned())


def test_a_floor_is_told_by_the_ledger_and_not_by_a_name() -> None:
    book = Book()
    book.plan("sea-floor", 1, 1, axes={"backend": "triton", "protocol": "http"})
    book.plan("onnx-http-floor", 1, 1)
    found = {entry["cell"]: planned_cell(entry) for entry in book.header["plan"]}
    assert cells_of(gates("latency_p99_ms <= 1").thresholds[0], found) == ["sea-floor/b1/c1"]


def test_an_older_plan_has_a_server_and_its_header_the_model() -> None:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010", model="clip")
    book.plan("onnx-http", 1, 1)
    (entry,) = book.header["plan"]
    found = planned_cell(entry, book.header)
    assert [found[name] for name in ("model", "codec", "server", "space")] == ["clip", "", "onnx", ""]
    assert planned_cell(entry)["model"] == ""
