"""Whether a baseline met the same conditions, as real headers state them."""

from fnmatch import fnmatchcase
from typing import Any

import pytest

from reports.cells_csv.sides import MUST, stated
from reports.gates.compared import unlike, what_differs, what_varies
from reports.gates.source import GateSource
from tests.reports.gates.rows import GRPC, HTTP, a_run, a_source

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
    "endpoints": {name: {"model": "clip", "weights": "laion2b"} for name in ("onnx-http", "onnx-grpc")},
    "links": [LINK],
}
"""As swarm writes it."""


def studies(*headers: dict[str, Any], cell: str = HTTP, **numbers: float) -> GateSource:
    """Of two repeats each, with what each header says otherwise."""
    told = {"workers": 1, "request_bytes": 602_112} | numbers
    runs = [[a_run(cell, at, **told) for at in (1, 2)]] * len(headers)
    return a_source(*runs, headers=[HEADER | one for one in headers])


def differing(may_differ: tuple[str, ...] = (), **header: Any) -> str:
    return what_differs(studies({}), studies(header), HTTP, may_differ)


def varying(*headers: dict[str, Any], may_differ: tuple[str, ...] = ()) -> str:
    return what_varies(studies(*headers), HTTP, may_differ)


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
def test_what_the_server_and_the_client_ran_on_must_be_the_same(header: dict[str, Any], said: str) -> None:
    assert said in differing(**header)


@pytest.mark.parametrize(
    "header",
    [
        {},
        part("fingerprint", git_commit="other", python="3.12"),
        part("options", command="y", seconds=20, seed=7),
        {"started_utc": "2026-11-23T11:00:00.123Z"},
    ],
)
def test_what_a_change_under_test_brings_along_may_differ(header: dict[str, Any]) -> None:
    assert differing(**header) == ""


def test_names_that_may_differ_are_patterns() -> None:
    other = part("fingerprint", cpu="Other", cores=8) | part("images", sha256="cd34", count=3)
    assert differing(("cpu", "cores", "images.*"), **other) == ""
    assert differing(("c*",), **other).startswith("images.count (64 here, 3 in the baseline)")


def test_three_differences_are_told_and_the_rest_counted() -> None:
    many = part("images", count=3, source="x", jpeg_bytes_mean=1, sha256="y")
    assert differing(**many).endswith(" and 1 more")
    assert differing(**part("images", count=3, source="x", sha256="y")).count("; ") == 2
    assert " more" not in differing(**part("images", count=3, source="x", sha256="y"))


@pytest.mark.parametrize("fact", ["weights", "model"])
def test_weights_and_model_of_the_cells_own_endpoint_must_be_the_same(fact: str) -> None:
    for name, differs in (("onnx-http", True), ("onnx-grpc", False)):
        other = {"endpoints": HEADER["endpoints"] | {name: HEADER["endpoints"][name] | {fact: "other"}}}
        assert bool(differing(**other)) is differs


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ([602_112, 602_112], ""),
        ([614_154, 500_000], ""),
        ([1, 614_155], "request_bytes (602,112 here, 614,155 in the baseline)"),
        ([590_306, 590_306], ""),
        ([590_305, 590_305], "request_bytes (602,112 here, 590,305 in the baseline)"),
        ([0, 0], ""),
    ],
)
def test_a_requests_size_may_vary_as_photographs_do(size: list[float], said: str) -> None:
    other = [a_run(HTTP, at, workers=1, request_bytes=each) for at, each in enumerate(size, 1)]
    assert what_differs(studies({}), a_source(other, **HEADER), HTTP, ()) == said


@pytest.mark.parametrize("column", ["workers", "hosts"])
def test_another_number_of_workers_is_another_client(column: str) -> None:
    found = what_differs(studies({}, **{column: 50}), studies({}, **{column: 51}), HTTP, ())
    assert found == f"{column} (50 here, 51 in the baseline)"


def test_every_name_that_must_be_the_same_is_one_that_a_header_states() -> None:
    requests = {"batch_mix": "1:0.5,2:0.5", "picture_mix": "224:0.5,640:0.5", "compression": "gzip"}
    load = {"channels": "4", "arrivals": "poisson", "load_profile": "hold:5", "think": "0.5"}
    header = HEADER | part("options", **load, **requests, shared_memory="system")
    names = list(stated(a_source([], **header).sides[0], ["onnx-http"]))
    older = {"cpu.*", "link", "host"}
    assert [
        must for must in MUST if must not in older and not any(fnmatchcase(it, must) for it in names)
    ] == []


def test_studies_that_are_judged_as_one_must_have_met_the_same() -> None:
    old, other = part("fingerprint", cpu="Other", git_commit="x"), part("fingerprint", cpu="A third")
    assert varying({}, {}, part("options", seconds=3)) == ""
    assert varying({}, old) == "cpu (Example CPU or Other)"
    assert varying(other, {}, old, {}) == "cpu (A third or Example CPU or Other)"
    assert varying({}, old, may_differ=("cpu",)) == ""
    linkless = varying({}, {"links": []})
    assert linkless.startswith("link.name (none or wan); link.one_way_ms (7 or not stated); link.mbit_per_s ")
    assert linkless.endswith(" and 1 more")


def test_the_order_of_studies_makes_no_difference() -> None:
    headers = [part("fingerprint", system=name) for name in ("Y", "X", "X")]
    now, then = studies(*headers), studies(*reversed(headers))
    assert what_differs(now, then, HTTP, ()) == ""
    assert what_differs(now, studies(headers[0]), HTTP, ()) == "system (X or Y here, Y in the baseline)"


def test_only_studies_with_the_cell_must_be_alike_in_it() -> None:
    both = [a_run(HTTP), a_run(GRPC)]
    headers = [HEADER, HEADER | part("fingerprint", cpu="Other")]
    assert unlike(a_source(both, [a_run(GRPC)], headers=headers), ()) == {
        GRPC: "its studies differ in cpu (Example CPU or Other): judge each directory alone, or "
        "let may_differ of [baseline] allow that"
    }


def test_requests_of_studies_may_vary_in_size_as_photographs_do() -> None:
    made = [[a_run(HTTP, request_bytes=size)] for size in (602_112, 610_000, 620_000)]
    assert what_varies(a_source(*made[:2]), HTTP, ()) == ""
    assert what_varies(a_source(*made), HTTP, ()) == "request_bytes (602,112 or 610,000 or 620,000)"


def test_by_what_a_study_is_judged_is_no_condition_that_it_met() -> None:
    told = part("options", gate="t.toml", baseline="b.json", repeat_until_decided=10, repeats=3)
    names = stated(a_source([], **HEADER | told).sides[0], ["onnx-http"])
    assert {name for name in names if name.startswith("options.")} == {
        *("options.client", "options.trace", "options.max_in_flight", "options.seconds", "options.seed"),
        "options.repeats",
    }
