"""A study from its ledger, of which only open runs are held: late records, a cut line, the plan's order."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from reports.fold.run_records import RunRecords, planned_of
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study, notices
from reports.study.summarise import given, summarise
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import (
    FIRST_SECOND,
    Record,
    drained_line,
    encoded,
    health_line,
    path_line,
    sample_line,
    triton,
    window,
)

MS = 1_000_000


def seen(tag: Record, scale: int, at: int = 0, phase: str = "measure") -> list[Record]:
    """What workers and master tell of two seconds, in which all figures are so many times as large."""
    lines: list[Record] = []
    for second in (FIRST_SECOND + at, FIRST_SECOND + at + 1):
        grown = scale * (20 + second - FIRST_SECOND)
        for worker, more in (("w0", scale), ("w1", 2 * scale)):
            told = {
                "cpu_pct": 10.0 * more,
                "in_flight": more,
                "users": more,
                "gc_max_ns": more,
                "lock_looks": 9,
            }
            told |= {
                "loop_ran_ns": more * MS,
                "cpu_wait_ns": more,
                "lock_wait_ns": more,
                "throttled_ns": more,
            }
            lines.append(health_line(tag, worker, second, [more * MS] * 60, **told, cpu_quota=1.0 / more))
            grew = dict.fromkeys(("bytes_sent", "segments_out", "bytes_received", "segments_in"), more)
            grew |= {"bytes_sent": more * 10**8, "busy_ns": more, "rwnd_limited_ns": more}
            looks = {
                "rtt_ns": more,
                "min_rtt_ns": 100 - more,
                "http2": {"frames_sent": more, "streams": more},
            }
            lines.append(path_line(tag, worker, second, connections=more, asked=more, **grew, **looks))
        gpu = {"util_pct": 10 * scale, "memory_bytes": scale, "power_w": 5.0 * scale, "sm_clock_mhz": scale}
        told = {"server": {"requests": 1_000 + grown}, "server_cpu": {"throttled_ns": grown, "quota": scale}}
        host = {"cpu_pct": 3.0 * scale}
        lines.append(sample_line(tag, second, gpus=[gpu], host=host, pending_requests=scale, **told))
    return [line | {"phase": phase} for line in lines]


def a_run(book: Book, endpoint: str, scale: int, repeat: int = 1) -> Record:
    """One that all sources tell of; in its warm-up the server answers no more."""
    loads = {"w0": [scale * MS] * 150, "w1": [3 * scale * MS] * 50}
    failures = {"timeout": scale, "reset": 1}
    tag = book.add(endpoint, 2, 4, loads, repeat=repeat, failures=failures, counters=triton(200, 2, MS))
    book.phases(tag, send=MS, wait=scale * MS)
    for record in book.of(tag):
        record |= {"abandoned": 3, "other_phases": scale} if record["kind"] == "drained" else {}
    for ended in book.measured(tag):
        ended["histograms"] |= {"failed": encoded([7 * MS]), "timeout": encoded([50 * MS] * scale)}
    book.records[-1:-1] = seen(tag, scale)
    return tag


@pytest.mark.parametrize(("phase", "at"), [("warm-up", -3), ("drain", 3)])
def test_what_workers_and_master_tell_of_other_phases_changes_no_figure(
    tmp_path: Path, phase: str, at: int
) -> None:
    book = Book()
    tag = a_run(book, "onnx-http", 2)
    (plain,) = load_study(book.write(tmp_path / "plain")).runs
    other = window(tag, "w0", [90 * MS] * 40, 2) | {"failures": {"timeout": 30}, "abandoned": 7}
    other |= {"second": FIRST_SECOND + at, "phase": phase, "first_start_ns": 1, "last_end_ns": 1 << 60}
    drained = drained_line(tag, "w0", 9, 900, 30) | {"phase": phase, "other_phases": 50}
    lost = sample_line(tag, FIRST_SECOND + at + 2, phase=phase, missing=["server: refused", "gpus: gone"])
    book.records[-1:-1] = [*seen(tag, 9, at, phase), other, drained, lost]
    assert load_study(book.write(tmp_path / "more")).runs == (plain,)
    assert (plain.counts.requests, plain.counts.failures, plain.counts.abandoned) == (206, 6, 6)
    assert (plain.failed.mean_ns, plain.timeout.mean_ns) == pytest.approx((7 * MS, 50 * MS), rel=1e-3)
    # 12 segments each way
    assert plain.path is not None
    assert plain.path.wire_bytes_per_image == pytest.approx((12 * 10**8 + 12 + 2 * 66 * 12) / 400, rel=1e-9)
    parts = (
        plain.path,
        plain.generator.in_flight,
        plain.gpu.power_w,
        plain.host_cpu_pct,
        plain.server.compute_ns,
    )
    assert None not in parts


def test_records_of_runs_that_are_mixed_are_each_runs_own(tmp_path: Path) -> None:
    book, alone = Book(), []
    for scale, (endpoint, repeat) in enumerate((("onnx-http", 1), ("onnx-http", 2), ("onnx-grpc", 1)), 1):
        a_run(book, endpoint, scale, repeat)
        a_run(single := Book(), endpoint, scale, repeat)
        alone += load_study(single.write(tmp_path / str(scale))).runs
    whole = load_study(book.write(tmp_path / "in-turn"))
    Random(5).shuffle(book.records)
    mixed = load_study(book.write(tmp_path / "mixed"))
    for study in (whole, mixed):
        assert [run.counts for run in study.runs] == [run.counts for run in alone]
        assert [study.blocks[run.cell, run.repeat].failures for run in study.runs] == [4, 6, 8]
        for part in (
            "latency",
            "failed",
            "timeout",
            "phases",
            "path",
            "gpu",
            "server",
            "per_worker",
            "client_cpu",
        ):
            assert [getattr(run, part) for run in study.runs] == [getattr(run, part) for run in alone], part


def test_how_requests_were_made_is_as_planned_or_as_older_options_say() -> None:
    options, links = (
        {"channels": "4", "client": "library", "link_mbit": 80},
        [{"name": "wan", "mbit_per_s": 8}],
    )
    older = {"channels": "4", "client": "library", "link_bytes_per_s": 10e6}
    assert given({"protocol": "grpc"}, options) == older
    assert given({"protocol": "http"}, options) == older | {"channels": ""}
    own = {"channels": "2", "client": "prepared"}
    planned = {"protocol": "http", "link": "wan"} | own
    assert given(planned, options, links) == own | {"link_bytes_per_s": 1e6}
    assert given(planned | {"link": "lan"}, options, links) == own | {"link_bytes_per_s": None}
    assert given({"protocol": "grpc"}, {}) == {"channels": "", "client": "", "link_bytes_per_s": None}


def test_what_a_plan_does_not_tell_is_as_it_is_where_it_does_not_apply() -> None:
    book = Book()
    book.plan("onnx-http", 1, 1)
    (entry,) = book.header["plan"]
    names = ("server", "stages", "confirming")
    assert [planned_of(entry)[name] for name in names] == ["onnx", (), False]
    told = planned_of(entry | {"server": "gpu", "stages": [["a", 1, 2, 3]], "confirming": 1})
    assert [told[name] for name in names] == ["gpu", (("a", 1.0, 2.0, 3.0),), True]


def test_a_record_that_comes_after_another_run_has_begun_counts_too(tmp_path: Path) -> None:
    book = Book()
    first = book.add("onnx-http", 1, 1, {"w0": [MS] * 400}, counters=triton(400, 1, MS))
    late = [record for record in book.records if record["kind"] in ("window", "drained")][-2:]
    book.records = [record for record in book.records if record not in late]
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    book.records[-3:-3] = late
    one, other = load_study(book.write(tmp_path)).runs
    assert (one.cell, one.counts.requests, other.counts.requests) == (first["cell"], 400, 300)
    assert "results-lost" not in [doubt.code for doubt in one.caveats]


def test_a_ledger_that_was_cut_in_a_runs_line_reports_up_to_there(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 400}, counters=triton(400, 1, MS))
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    ledger = book.write(tmp_path) / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    study = load_study(tmp_path)
    assert (study.cut_line, study.status) == (True, "unfinished")
    assert [(run.counts.requests, run.status) for run in study.runs] == [(400, "done"), (300, "unfinished")]


def test_listeners_that_missed_events_are_told_of_before_any_number(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 400}, counters=triton(400, 1, MS))
    book.footer()
    assert list(notices(load_study(book.write(tmp_path / "heard")))) == []
    book.records[-1]["events"] = ["timelines.py missed events: 2 of 9 events dropped."]
    assert list(notices(load_study(book.write(tmp_path / "missed")))) == [
        "timelines.py missed events: 2 of 9 events dropped. No figure here depends on it."
    ]
    book.records[-1]["events"] = 7
    with pytest.raises(LedgerError, match="is not what a ledger holds"):
        load_study(book.write(tmp_path / "damaged"))


def test_runs_stand_in_the_order_of_the_plan_and_not_of_their_ends(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, repeat=2)
    book.plan("onnx-http", 1, 1, 3)
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 10})
    book.plan_later()
    book.header["plan"].reverse()
    book.footer("interrupted")
    book.footer()
    study = load_study(book.write(tmp_path))
    assert study.status == "complete"
    assert [(run.endpoint, run.repeat) for run in study.runs] == [
        ("onnx-http", 3),
        ("onnx-http", 2),
        ("onnx-grpc", 1),
    ]


def test_a_price_that_is_given_takes_the_place_of_the_studys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def noted(run: RunRecords, header: dict[str, Any]) -> Summary:
        seen.append(header["options"]["usd_per_hour"])
        return summarise(run, header)

    monkeypatch.setattr("reports.study.study.summarise", noted)
    book = Book(options={"usd_per_hour": 1.5})
    book.plan("onnx-http", 1, 1)
    book.write(tmp_path)
    load_study(tmp_path)
    load_study(tmp_path, 4.0)
    assert seen == [1.5, 4.0]
