"""Each column has its own figure in its own unit; rows are read as they were written, or refused."""

from dataclasses import fields
from typing import Any

import pytest

from reports.cells_csv.columns import CELLS, NUMBERS, TIMELINE, csv_text
from reports.cells_csv.rows import Row, SideError, in_order, published_files, read_published, rows_of
from reports.cells_csv.sides import Side, conditions, roles, stated
from reports.fold.timeline import TimelineSecond
from reports.fold.windows import Offered
from tests.reports.limit_runs import a_run
from tests.reports.parts import PLACES

OWN = ("network_ms", "unexplained_ms", "network_most_ms")


def in_ns(column: str) -> str:
    return column.replace("_ms", "_ns")


def test_a_run_has_each_figure_in_the_column_of_its_name() -> None:
    columns = [column for column in NUMBERS if in_ns(column) in PLACES or column in OWN]
    numbers: dict[str, float] = {column: at + 0.5 for at, column in enumerate(columns, 1)}
    figures: dict[str, Any] = {
        in_ns(name): of * (1e6 if name.endswith("_ms") else 1) for name, of in numbers.items()
    }
    figures |= {"requests": 30, "failures": 10, "connects": 5, "measure_ns": 7e9}
    figures |= {
        "offered": Offered(9.0, 1, 1.0),
        "server_parts": {"queue": 1e6, "compute": 2e6, "decode": 4e6},
    }
    of_parts = {"server_ms": 7, "server_queue_ms": 1, "server_compute_ms": 2, "connects_per_request": 0.25}
    numbers |= {"requests": 30, "failures": 10, "measure_s": 7, "offered_per_s": 9} | of_parts
    run = a_run(**figures)
    assert {name: CELLS[name](run) for name in numbers} == pytest.approx(numbers)


def test_a_second_has_each_figure_in_the_column_of_its_name() -> None:
    numbers = {one.name: at for at, one in enumerate(fields(TimelineSecond), 1)}
    second = TimelineSecond(**numbers)  # type: ignore[arg-type]
    found = {name: of(second) for name, of in TIMELINE.items()}
    assert found == {
        name: numbers[in_ns(name)] / 1e6 if name.endswith("_ms") else numbers[name] for name in TIMELINE
    }


def test_numbers_have_six_decimals_and_text_stays_text() -> None:
    row = [-1.23456789, 7, None, "-1.5", "=1", "+1", "@x", "a=1", "\tx", "a\rb", 'a,"b"']
    text = '-1.234568,7,,\'-1.5,\'=1,\'+1,\'@x,a=1,\'\tx,a b,"a,""b"""\n'
    assert csv_text("ab", [row]) == f"a,b\n{text}"


LINE = {"study": "s", "cell": "onnx/b2/c4", "endpoint": "onnx", "backend": "onnx", "protocol": "http"}
LINE |= {"payload": "fp32", "batch": "2", "load": "closed", "level": "4"}


def read(**more: str | None) -> Row:
    """One line of a file, without what is None."""
    line = {name: text for name, text in (LINE | more).items() if text is not None}
    (row,) = rows_of([",".join(line), ",".join(line.values())], "a.csv")
    return row


def test_a_row_is_read_with_what_it_tells() -> None:
    row = read(
        requests="30", failures="4", latency_p50_ms="", caveats="few-samples;client-bound;", source="a.pdf"
    )
    assert (row.cell, row.batch, row.level, row.source) == ("onnx/b2/c4", 2, 4.0, "a.pdf")
    assert row.numbers == {"batch": 2, "level": 4, "requests": 30, "failures": 4}
    assert (row.codes, row.succeeded) == (("few-samples", "client-bound"), 26)
    assert [caveat.code for caveat in row.disqualified] == ["client-bound"]
    assert (read(requests="30").succeeded, read(failures="4").succeeded, read().codes) == (30, None, ())
    assert (read().shares, read(server="gpu").shares, read(stand_in="a fake").stand_in) == (
        "onnx",
        "gpu",
        "a fake",
    )
    assert (read(backend="emulated", stand_in="").stand_in, read().stand_in) == ("", "")
    assert read(backend="emulated").stand_in


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"requests": "inf"}, "a.csv: line 2: requests is 'inf', which is no number"),
        ({"level": "nan"}, "a.csv: line 2: level is 'nan', which is no number"),
        ({"batch": ""}, "a.csv: line 2: has no batch"),
        ({"load": None, "payload": None}, "a.csv: lacks the columns payload, load"),
    ],
)
def test_what_is_no_row_is_refused(more: dict[str, str | None], why: str) -> None:
    with pytest.raises(SideError, match=why):
        read(**more)


def test_rows_stand_by_endpoint_as_given_and_then_by_users_and_batch() -> None:
    rows = [read(endpoint=name, level=level, batch=batch) for name, level, batch in (
        ("b", "10", "1"), ("b", "9", "8"), ("b", "9", "1"), ("a", "1", "1"), ("c", "1", "1")
    )]  # fmt: skip
    found = [(row.endpoint, row.level, row.batch) for row in in_order(rows, ["c"])]
    assert found == [("c", 1, 1), ("b", 9, 1), ("b", 9, 8), ("b", 10, 1), ("a", 1, 1)]
    assert read_published("nothing") == ()
    assert [*published_files()] == sorted(published_files()) != []


NAMED = {
    "name": "x",
    "kind": "vm",
    "workers": 2,
    "cores": 4,
    "system": "Linux",
    "tcp_congestion_control": "bbr",
}
LINK = {"name": "wan", "one_way_ms": 5, "mbit_per_s": 100, "loss_pct": 1, "queue_bytes": 9, "burst_bytes": 8}
LINK |= {"congestion_control": "cubic", "emulator": "tc"}
HEADER: dict[str, Any] = {
    "size": "quick",
    "links": [LINK | {"pid": 7}],
    "hosts": [{"name": "x", "workers": 2, "facts": NAMED | {"uptime": 9}}],
    "images": {"count": 64},
    "endpoints": {"onnx": {"model": "m", "weights": "w", "tls": True, "url": "u"}, "other": {"model": "n"}},
    "fingerprint": {
        "cpu": {"model": "c"},
        "cores": 2,
        "gpus": ["g", "h"],
        "system": "L",
        "kernel": 6,
        "targets": 1,
    }
    | {"tcp_congestion_control": "reno"},
    "options": {"trace": False, "client": "library", "channels": "4", "command": "locust", "seed": None},
}


def side(header: dict[str, Any], *rows: Row) -> Side:
    return Side(name="s", kind="study", place="s", rows=rows, header=header)


def test_what_a_study_states_and_what_of_it_are_conditions() -> None:
    link = {f"link.{name}": str(of) for name, of in LINK.items()}
    host = {f"host.{name}": str(of) for name, of in NAMED.items()}
    must = {
        "endpoints.onnx.model": "m",
        "endpoints.onnx.weights": "w",
        "images.count": "64",
        "cpu.model": "c",
    }
    must |= {"cores": "2", "gpus": "g, h", "system": "L", "tcp_congestion_control": "reno"} | link | host
    must |= {"options.trace": "false", "options.client": "library", "options.channels": "4"}
    others = {"study": "s", "size": "quick", "endpoints.onnx.tls": "true", "kernel": "6"}
    assert conditions(side(HEADER, read()), "onnx") == must
    assert stated(side(HEADER, read()), ["onnx"]) == must | others
    assert stated(side({}, read(source="a.pdf:3"), read(source="a.pdf:4")), ["onnx"]) == {
        "study": "s",
        "source": "a.pdf",
    }
    two = HEADER | {"links": [LINK, LINK | {"name": "lan", "loss_pct": 0}], "hosts": []}
    found = conditions(side(two), "onnx")
    assert (found["link.name"], found["link.wan.loss_pct"], found["link.lan.loss_pct"]) == (
        "wan, lan",
        "1",
        "0",
    )
    assert (found["host.name"], "link.wan.name" in found) == ("none", False)


def test_sides_are_called_by_their_role() -> None:
    assert (roles(2), roles(3)) == (["base", "candidate"], ["base", "candidate A", "candidate B"])
    one = Side(role="candidate B", name="x", kind="study", place="x", rows=(), header={})
    assert (one.short, one.label, one.known) == ("B", "candidate B (x)", False)
