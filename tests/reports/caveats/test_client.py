"""What is said of the generator itself: its health, its lateness, the rate it kept."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reports.caveats.client import client_caveats, due_by, lags
from reports.fold.health import ClientHealth
from reports.fold.samples import Gpus, OthersUse
from reports.fold.windows import Arrivals, ClientPhases, Offered, Windows
from reports.histogram.percentiles import Distribution
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, encoded, health_line, sample_line, triton

MS = 1_000_000
LOADS = {"w0": [20 * MS] * 600, "w1": [20 * MS] * 600}


def folded(book: Book, folder: Path) -> Summary:
    return load_study(book.write(folder)).runs[0]


def texts(run: Summary) -> dict[str, str]:
    return {doubt.code: doubt.text for doubt in run.caveats}


def test_health_is_that_of_the_worst_worker_in_the_measure_phase(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 8, LOADS, counters=triton(1_200, 1, MS))
    book.records += [
        health_line(tag, "w0", FIRST_SECOND - 1, [9 * MS], phase="warm-up", cpu_pct=99.0, gc_max_ns=9 * MS),
        health_line(tag, "w0", cpu_pct=50.0, in_flight=3),
        health_line(tag, "w0", FIRST_SECOND + 1, cpu_pct=70.0, in_flight=5),
        health_line(
            tag, "w1", lags_ns=[100_000] * 98 + [MS] * 2, cpu_pct=40.0, gc_max_ns=2 * MS, in_flight=2
        ),
        health_line(tag, "w1", FIRST_SECOND + 1, cpu_pct=44.0, in_flight=4),
    ]
    run = folded(book, tmp_path)
    assert (run.generator.worker_cpu_pct, run.generator.gc_max_ns) == (60.0, 2 * MS)
    # 101 samples of w1, two of them long: the p99 is the 100th
    assert run.generator.loop_lag_p99_ns == MS
    # 5 in the first second, 9 in the second
    assert run.generator.in_flight == 7.0
    assert set(texts(run)) == {"few-samples"}


def test_what_others_took_is_of_the_looks_in_the_measure_phase(tmp_path: Path) -> None:
    book = Book(fingerprint={"cpu": "Example CPU", "cores": 2})
    tag = book.add("onnx-http", 1, 8, LOADS, counters=triton(1_200, 1, MS))
    looks = ((0, {"yes": 9_000 * MS}), (2, {"yes": 2_000 * MS}), (4, {"yes": 1_000 * MS, "cron": 200 * MS}))
    for at, taken in looks:
        told = {"others_ns": taken, "host": {"cpu_pct": 99.0}}
        book.records.append(sample_line(tag, FIRST_SECOND + at, **told))
    run = folded(book, tmp_path)
    assert (run.host_cores, run.others_cpu) == (2, OthersUse(0.8, (("yes", 0.75), ("cron", 0.05))))
    assert texts(run)["others-cpu"] == (
        "other processes took 0.8 cores (yes 0.75, cron 0.05), and the host's 2 cores were 99.0 % busy"
    )


def test_an_open_load_states_what_it_offered(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 100, LOADS, counters=triton(1_200, 1, MS), late=3, dropped=2)
    for record in book.records:
        record |= {"overslept": 7} if record["kind"] == "drained" else {}
    run = folded(book, tmp_path)
    assert (run.load, run.arrivals, run.level, run.cell) == ("open", "constant", 100, "onnx-http/b1/r100")
    # 600 from each of two workers in 12 s
    assert (run.sent.offered_per_s, run.sent.due, run.sent.dropped, run.sent.late) == (100.0, 1_204, 4, 6)
    assert run.sent.overslept == 14
    assert set(texts(run)) == {"few-samples", "dropped-arrivals"}


def test_values_that_were_clamped_are_counted_by_histogram(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    for record in book.records:
        if record["kind"] == "window":
            record["out_of_range"] = {"send_delay": 2, "latency": 1, "send": 0}
    run = folded(book, tmp_path)
    # the warm-up's window does not count
    assert texts(run)["out-of-range"] == "values below 0 or above an hour: latency 2, send_delay 4"
    assert not run.tainted


def test_runs_that_were_planned_later_follow_the_header(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 10, LOADS)
    book.add_open("onnx-http", 20, LOADS)
    book.plan_later()
    book.plan("onnx-http", 1, 40, arrivals="constant")
    book.plan_later()
    study = load_study(book.write(tmp_path))
    assert [run.cell for run in study.runs] == [f"onnx-http/b1/r{rate}" for rate in (10, 20, 40)]
    assert [run.status for run in study.runs] == ["done", "done", "not-run"]
    assert [entry["max_in_flight"] for entry in study.plan] == [256] * 3


def test_an_older_ledger_leaves_the_new_fields_unknown(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 300}, counters=triton(300, 1, MS))
    run = folded(book, tmp_path)
    assert run.latency.p50_ns == pytest.approx(10 * MS, rel=5e-4)
    assert (run.sent, run.phases, run.generator, run.gpu) == (
        *(Arrivals(), ClientPhases(), ClientHealth(), Gpus()),
    )
    assert set(texts(run)) == {"few-samples"}


def test_a_ledger_of_a_generator_that_is_too_slow(tmp_path: Path) -> None:
    """Each request of 20 ms begins 9 ms late, a part of them though users were free."""
    book = Book()
    failures = {"exhausted": 20}
    tag = book.add_open("onnx-http", 100, LOADS, failures=failures, phase_s=12.4)
    for record in book.records:
        if record["kind"] == "window" and record["histograms"]:
            record["histograms"]["send_delay"] = encoded([9 * MS] * record["ok"])
        if record["kind"] == "drained":
            record["overslept"] = 32
    book.records.append(health_line(tag, "w1", lags_ns=[4_100_000] * 50, cpu_pct=95.25))
    found = texts(folded(book, tmp_path))
    assert found["client-bound"] == (
        "worker w1 used 95.2 % of a core; "
        "worker w1's event loop lagged 4.1 ms at p95, beside a latency of 20.0 ms; "
        "64 of 1,240 requests began late while users were free, 9.0 ms at p95 beside a latency of 20.0 ms"
    )
    assert found["client-exhausted"] == "40 of 1,240 requests found no free port or file descriptor"
    assert "rate-missed" not in found


BUSY = "worker w1 used {} % of a core"
LAGGED = "worker w2's event loop lagged 4.1 ms at p95, beside a latency of 20.0 ms"
STOPPED = "events waited 2.1 ms for worker w3's loop, beside a mean latency of 10.0 ms"
OVERSLEPT = "51 of 1,000 requests began late while users were free, {} ms at p95 beside a latency of 20.0 ms"


RISING = [["ramp", 10, 0, 100], ["hold", 30, 100, 100]]
TRACE = {"width_s": 10, "requests": [100, 400, 100, 400], "seconds": 40.0}


def said(
    fit: dict[str, float | None] | None = None,
    planned: dict[str, Any] | None = None,
    delay_ms: float = 0.0,
    **known: Any,
) -> dict[str, str]:
    """What is said of 1,000 requests of 20 ms at p95 and 10 on average, sent as 100 a second in 10 s."""
    workers = {"busiest": "w1", "busiest_loop": "w0", "most_lagging": "w2", "most_delaying": "w3"}
    counts = Windows(ok=990, abandoned=10, **{n: known.pop(n) for n in ("failure_kinds",) if n in known})
    few = {"few_p95_ns": 20.0 * MS} if known.pop("few", False) else {"p95_ns": 20.0 * MS}
    found = client_caveats(
        {"load": "open", "level": 100.0, "arrivals": "constant"} | (planned or {}),
        counts,
        Arrivals(**{"due": 1_010, "offered": Offered(100.0, 2, 10.0)} | known),
        ClientHealth(**workers, **fit or {}),
        Distribution(mean_ns=10.0 * MS, **few),
        Distribution(p95_ns=delay_ms * MS),
    )
    return {one.code: one.text for one in found}


@pytest.mark.parametrize(
    ("known", "code", "text"),
    [
        ({}, "", ""),
        ({"fit": {"worker_cpu_pct": 89.9}}, "", ""),
        ({"fit": {"worker_cpu_pct": 90.0}}, "client-bound", BUSY.format("90.0")),
        # gRPC's own threads run beside the loop's
        ({"fit": {"worker_cpu_pct": 130.0, "loop_cpu_pct": 89.9}}, "", ""),
        ({"fit": {"worker_cpu_pct": 9.0, "loop_cpu_pct": 90.0}}, "client-bound", "worker w0 used 90.0 % of"),
        ({"fit": {"loop_lag_p95_ns": 4.0 * MS, "loop_delay_ns": 2.0 * MS}}, "", ""),
        ({"fit": {"loop_lag_p95_ns": 4.1 * MS, "loop_delay_ns": 9.0 * MS}}, "client-bound", LAGGED),
        ({"fit": {"loop_lag_p95_ns": 4.1 * MS}, "few": True}, "client-bound", LAGGED),
        ({"fit": {"loop_delay_ns": 2.1 * MS}}, "client-bound", STOPPED),
        (
            {"fit": {"worker_cpu_pct": 95.25, "loop_lag_p95_ns": 4.1 * MS}},
            "client-bound",
            f"{BUSY.format('95.2')}; {LAGGED}",
        ),
        ({"overslept": 50, "delay_ms": 19.0}, "", ""),
        ({"overslept": 51, "delay_ms": 4.0}, "", ""),
        ({"overslept": 51, "delay_ms": 4.1}, "client-bound", OVERSLEPT.format("4.1")),
        ({"overslept": 51, "delay_ms": 4.1, "few": True}, "client-bound", OVERSLEPT.format("4.1")),
        ({"late": 10}, "", ""),
        ({"planned": {"load": "closed"}, "late": 1_000}, "", ""),
        ({"late": 11}, "late-arrivals", "11 of 1,000 requests (1.10 %) began more than 5 ms after their tim"),
        ({"dropped": 1}, "dropped-arrivals", "1 of 1,010 arrivals were never sent: the slowest are missing"),
        ({"failure_kinds": Counter(exhausted=1, reset=9)}, "client-exhausted", "1 of 1,010 requests found n"),
        # 1 % of the rate
        ({"planned": {"level": 101.0}}, "", ""),
        ({"planned": {"level": 99.1}}, "", ""),
        ({"planned": {"level": 101.1}}, "rate-missed", "100 requests a second were sent, 101.1 were asked f"),
        ({"planned": {"level": 98.9}}, "rate-missed", "100 requests a second were sent, 98.9 were asked for"),
        # one request of each of two workers in 10 s
        ({"planned": {"level": 5.19}, "offered": Offered(5.0, 2, 10.0)}, "", ""),
        ({"planned": {"level": 5.21}, "offered": Offered(5.0, 2, 10.0)}, "rate-missed", "5.00 requests a se"),
        # Poisson arrivals vary by 3 × √(90 / 10) = 9 a second
        ({"planned": {"level": 90.0, "arrivals": "poisson"}, "offered": Offered(99.0, 2, 10.0)}, "", ""),
        (
            {"planned": {"level": 90.0, "arrivals": "poisson"}, "offered": Offered(99.1, 2, 10.0)},
            "rate-missed",
            "99.1 requests a second were sent, 90 were asked for",
        ),
        # a quarter of all arrivals, drawn at random, by 3 × √(90 × 3/4 / 10) = 7.79 a second
        ({"planned": {"level": 90.0, "split": 0.25}, "offered": Offered(97.7, 2, 10.0)}, "", ""),
        (
            {"planned": {"level": 90.0, "split": 0.25}, "offered": Offered(97.8, 2, 10.0)},
            "rate-missed",
            "97.8 req",
        ),
        # 10 s that rise from 0 to 100 a second, and 30 s of those: 87.5 on average
        (
            {"planned": {"stages": RISING}, "offered": Offered(100.0, 2, 40.0)},
            "rate-missed",
            "100 requests a second were sent, 87.5 were asked for",
        ),
        # stopped as it had risen: 50 on average
        ({"planned": {"stages": RISING}, "offered": Offered(50.0, 2, 10.0)}, "", ""),
        ({"planned": {"asked": TRACE}, "offered": Offered(25.0, 2, 40.0)}, "", ""),
        ({"planned": {"asked": TRACE}, "offered": Offered(20.0, 2, 40.0)}, "rate-missed", "20.0 requests a"),
        # stopped within the second ten seconds, before the rest was due
        ({"planned": {"asked": TRACE}, "offered": Offered(30.0, 2, 15.0)}, "", ""),
        ({"planned": {"asked": TRACE}, "offered": Offered(5.0, 2, 15.0)}, "rate-missed", "5.00 requests a"),
        ({"planned": {"level": 200.0}, "offered": None}, "", ""),
    ],
)
def test_what_is_doubted_for_the_generators_own_doing(known: dict[str, Any], code: str, text: str) -> None:
    found = said(**known)
    assert list(found) == ([code] if code else [])
    assert text in found.get(code, "")


def test_what_of_a_trace_was_due_when_a_run_was_stopped() -> None:
    assert [due_by(TRACE, s) for s in (0, 9, 10, 39, 40, 41)] == [
        *((0, 0), (0, 100), (100, 100), (600, 1_000), (1_000, 1_000), (1_000, 1_000)),
    ]
    older = {name: value for name, value in TRACE.items() if name != "seconds"}
    assert [due_by(older, s) for s in (29, 30)] == [(500, 600), (1_000, 1_000)]


def test_a_lag_that_is_only_the_schedulers_grain_is_no_doubt() -> None:
    assert not lags(2.0 * MS, 9.0 * MS)
    assert lags(2.01 * MS, 9.0 * MS)
    assert not lags(9.0 * MS, None)
    assert not lags(None, 1.0)
