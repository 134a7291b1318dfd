"""Whether a baseline met the same conditions, as real headers state them."""

from pathlib import Path
from typing import Any

import pytest

from reports.cells_csv.sides import MUST
from reports.gates.compared import unlike, what_differs, what_varies
from tests.reports.gates.book import a_book, a_study, repeats, source

CELL = "onnx-http/b1/c1"
HOST = {"name": "a", "kind": "local", "workers": 2, "facts": {"cores": 4, "system": "Linux-6.1"}}
LINK = {"name": "wan", "one_way_ms": 7, "mbit_per_s": 100, "loss_pct": 0.0}
HEADER: dict[str, Any] = {
    "options": {"command": "x", "client": "prepared", "channels": "", "arrivals": "", "trace": False}
    | {"max_in_flight": 256, "seconds": 10, "seed": 1},
    "fingerprint": {
        "python": "3.11",
        "system": "Linux-6.1",
        "cpu": "Example CPU",
        "cores": 4,
        "gpus": ["A100"],
    }
    | {"tcp_congestion_control": "cubic", "git_commit": "0123abc"},
    "images": {"count": 64, "source": "photographs", "jpeg_bytes_mean": 9800, "sha256": "ab12"},
    "hosts": [HOST],
    "links": [LINK],
}
"""As swarm writes it."""


def differing(folder: Path, may_differ: tuple[str, ...] = (), **header: Any) -> str:
    now, then = (
        source(folder / name, a_study(**more)) for name, more in (("a", HEADER), ("b", HEADER | header))
    )
    return what_differs(now, then, CELL, may_differ)


def varying(folder: Path, *headers: dict[str, Any], may_differ: tuple[str, ...] = ()) -> str:
    return what_varies(source(folder, *(a_study(**HEADER | one) for one in headers)), CELL, may_differ)


def part(name: str, **change: Any) -> dict[str, Any]:
    return {name: HEADER[name] | change}


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (part("images", sha256="cd34"), "images.sha256 (ab12 here, cd34 in the baseline)"),
        (part("fingerprint", cpu="Other"), "cpu (Example CPU here, Other in the baseline)"),
        (
            part("fingerprint", cpu={"model": "x"}),
            "cpu (Example CPU here, not stated in the baseline); cpu.model",
        ),
        (part("fingerprint", cores=8), "cores (4 here, 8 in the baseline)"),
        (part("fingerprint", gpus=["H100"]), "gpus (A100 here, H100 in the baseline)"),
        (part("fingerprint", system="Linux-6.2"), "system (Linux-6.1 here, Linux-6.2 in the baseline)"),
        (part("fingerprint", tcp_congestion_control="bbr"), "tcp_congestion_control (cubic here, bbr"),
        (part("options", client="simple"), "options.client (prepared here, simple in the baseline)"),
        (part("options", channels="4"), "options.channels (not stated here, 4 in the baseline)"),
        (part("options", max_in_flight=8), "options.max_in_flight (256 here, 8 in the baseline)"),
        (part("options", trace=True), "options.trace (false here, true in the baseline)"),
        ({"links": [LINK | {"one_way_ms": 8}]}, "link.one_way_ms (7 here, 8 in the baseline)"),
        ({"links": []}, "link.name (wan here, none in the baseline)"),
        ({"hosts": [HOST | {"workers": 3}]}, "host.workers (2 here, 3 in the baseline)"),
        ({"hosts": [HOST | {"facts": {"cores": 2, "system": "Linux-6.1"}}]}, "host.cores (4 here, 2 in the"),
        ({"hosts": [HOST, HOST | {"name": "b"}]}, "host.name (a here, a, b in the baseline)"),
    ],
)
def test_what_the_server_and_the_client_ran_on_must_be_the_same(
    tmp_path: Path, header: dict[str, Any], said: str
) -> None:
    assert said in differing(tmp_path, **header)


@pytest.mark.parametrize(
    "header",
    [
        {},
        part("fingerprint", git_commit="other", python="3.12"),
        part("options", command="y", seconds=20, seed=7),
        {"started_utc": "2026-11-23T11:00:00.123Z"},
    ],
)
def test_what_a_change_under_test_brings_along_may_differ(tmp_path: Path, header: dict[str, Any]) -> None:
    assert differing(tmp_path, **header) == ""


def test_names_that_may_differ_are_patterns(tmp_path: Path) -> None:
    other = part("fingerprint", cpu="Other", cores=8) | part("images", sha256="cd34", count=3)
    assert differing(tmp_path / "a", ("cpu", "cores", "images.*"), **other) == ""
    assert differing(tmp_path / "b", ("c*",), **other).startswith("images.count (64 here, 3 in the baseline)")


def test_three_differences_are_told_and_the_rest_counted(tmp_path: Path) -> None:
    many = part("images", count=3, source="x", jpeg_bytes_mean=1, sha256="y")
    assert differing(tmp_path, **many).endswith(" and 1 more")


def test_weights_and_model_of_the_cells_own_endpoint_must_be_the_same(tmp_path: Path) -> None:
    for name, differs in (("onnx-http", True), ("onnx-grpc", False)):
        other = a_study(**HEADER)
        other.header["endpoints"][name]["weights"] = "other"
        now, then = source(tmp_path / name / "a", a_study(**HEADER)), source(tmp_path / name / "b", other)
        assert bool(what_differs(now, then, CELL, ())) is differs


@pytest.mark.parametrize(("size", "differs"), [(610_000, False), (620_000, True)])
def test_a_requests_size_may_vary_as_photographs_do(tmp_path: Path, size: int, differs: bool) -> None:
    other = a_study()
    for repeat in range(1, 6):
        other.request_bytes({"cell": CELL, "repeat": repeat}, size)
    found = what_differs(source(tmp_path / "a", a_study()), source(tmp_path / "b", other), CELL, ())
    assert found == ("request_bytes (602,112 here, 620,000 in the baseline)" if differs else "")


def test_another_number_of_workers_is_another_client(tmp_path: Path) -> None:
    other = a_study()
    for record in other.records:
        if record.get("event") == "start":
            record["workers"] = ["w0", "w1"]
    found = what_differs(source(tmp_path / "a", a_study()), source(tmp_path / "b", other), CELL, ())
    assert found == "workers (1 here, 2 in the baseline)"


def test_every_name_that_must_be_the_same_is_one_that_a_header_states(tmp_path: Path) -> None:
    from fnmatch import fnmatchcase

    from reports.cells_csv.sides import stated

    header = HEADER | part("options", channels="4", arrivals="poisson", load_profile="hold:5")
    names = list(stated(source(tmp_path, a_study(**header)).sides[0], ["onnx-http"]))
    older = {"cpu.*", "link", "host"}
    assert [
        must for must in MUST if must not in older and not any(fnmatchcase(it, must) for it in names)
    ] == []


def test_studies_that_are_judged_as_one_must_have_met_the_same(tmp_path: Path) -> None:
    old, other = part("fingerprint", cpu="Other", git_commit="x"), part("fingerprint", cpu="A third")
    assert varying(tmp_path / "a", {}, {}, part("options", seconds=3)) == ""
    assert varying(tmp_path / "b", {}, old) == "cpu (Example CPU or Other)"
    assert varying(tmp_path / "c", other, {}, old, {}) == "cpu (A third or Example CPU or Other)"
    assert varying(tmp_path / "d", {}, old, may_differ=("cpu",)) == ""
    linkless = varying(tmp_path / "e", {}, {"links": []})
    assert linkless.startswith("link.name (none or wan); link.one_way_ms (7 or not stated); link.mbit_per_s ")
    assert linkless.endswith(" and 1 more")


def test_the_order_of_studies_makes_no_difference(tmp_path: Path) -> None:
    headers = [HEADER | part("fingerprint", system=name) for name in ("Y", "X", "X")]
    now = source(tmp_path / "now", *(a_study(**one) for one in headers))
    then = source(tmp_path / "then", *(a_study(**one) for one in reversed(headers)))
    other = source(tmp_path / "other", a_study(**headers[0]))
    assert what_differs(now, then, CELL, ()) == ""
    assert what_differs(now, other, CELL, ()) == "system (X or Y here, Y in the baseline)"


def test_only_studies_with_the_cell_must_be_alike_in_it(tmp_path: Path) -> None:
    some = a_book(**HEADER | part("fingerprint", cpu="Other"))
    repeats(some, "onnx-grpc", 10.0)
    some.footer()
    assert unlike(source(tmp_path, a_study(**HEADER), some), ()) == {
        "onnx-grpc/b1/c1": "its studies differ in cpu (Example CPU or Other): judge each directory alone, or "
        "let may_differ of [baseline] allow that"
    }


def test_requests_of_studies_may_vary_in_size_as_photographs_do(tmp_path: Path) -> None:
    books = [a_study() for _ in range(3)]
    for book, size in zip(books, (602_112, 610_000, 620_000), strict=True):
        for repeat in range(1, 6):
            book.request_bytes({"cell": CELL, "repeat": repeat}, size)
    assert what_varies(source(tmp_path / "a", *books[:2]), CELL, ()) == ""
    assert (
        what_varies(source(tmp_path / "b", *books), CELL, ())
        == "request_bytes (602,112 or 610,000 or 620,000)"
    )


def test_by_what_a_study_is_judged_is_no_condition_that_it_met(tmp_path: Path) -> None:
    from reports.cells_csv.sides import stated

    told = part("options", gate="t.toml", baseline="b.json", repeat_until_decided=10, repeats=3)
    names = stated(source(tmp_path, a_study(**HEADER | told)).sides[0], ["onnx-http"])
    assert {name for name in names if name.startswith("options.")} == {
        *("options.client", "options.trace", "options.max_in_flight", "options.seconds", "options.seed"),
        "options.repeats",
    }
