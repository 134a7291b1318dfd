"""What is said of the generator itself: its health, its lateness, the rate it kept."""

from pathlib import Path
from typing import Any

import pytest

from reports.caveats.client import allowed_per_s
from reports.fold.health import ClientHealth
from reports.fold.samples import Gpus
from reports.fold.windows import Arrivals, ClientPhases, Offered
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, drained_line, encoded, health_line, triton

MS = 1_000_000
LOADS = {"w0": [20 * MS] * 600, "w1": [20 * MS] * 600}


def folded(book: Book, folder: Path) -> Summary:
    return load_study(book.write(folder)).runs[0]


def texts(run: Summary) -> dict[str, str]:
    return {doubt.code: doubt.text for doubt in run.caveats}


def with_health(folder: Path, *lines: Record) -> Summary:
    book = Book()
    tag = book.add("onnx-http", 1, 8, LOADS, counters=triton(1_200, 1, MS))
    book.records += [line | tag for line in lines]
    return folded(book, folder)


def open_run(folder: Path, rate: float = 100, **more: Any) -> Summary:
    book = Book()
    book.add_open("onnx-http", rate, LOADS, counters=triton(1_200, 1, MS), **more)
    return folded(book, folder)


def test_health_is_that_of_the_worst_worker_in_the_measure_phase(tmp_path: Path) -> None:
    run = with_health(
        tmp_path,
        health_line({}, "w0", FIRST_SECOND - 1, [9 * MS], phase="warm-up", cpu_pct=99.0, gc_max_ns=9 * MS),
        health_line({}, "w0", cpu_pct=50.0, in_flight=3),
        health_line({}, "w0", FIRST_SECOND + 1, cpu_pct=70.0, in_flight=5),
        health_line({}, "w1", lags_ns=[100_000] * 98 + [MS] * 2, cpu_pct=40.0, gc_max_ns=2 * MS, in_flight=2),
        health_line({}, "w1", FIRST_SECOND + 1, cpu_pct=44.0, in_flight=4),
    )
    assert (run.generator.worker_cpu_pct, run.generator.gc_max_ns) == (60.0, 2 * MS)
    # 101 samples of w1, two of them long: the p99 is the 100th
    assert run.generator.loop_lag_p99_ns == MS
    # 5 in the first second, 9 in the second
    assert run.generator.in_flight == 7.0
    assert set(texts(run)) == {"few-samples"}


def test_failures_for_want_of_ports_or_files_are_the_clients_own(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 8, {"w0": [20 * MS] * 600}, failures={"exhausted": 40, "reset": 2})
    run = folded(book, tmp_path)
    assert texts(run)["client-exhausted"] == "40 of 642 requests found no free port or file descriptor"
    assert run.tainted


def test_what_covers_less_than_a_second_counts_for_less(tmp_path: Path) -> None:
    run = with_health(
        tmp_path,
        health_line({}, "w0", cpu_pct=40.0, span_ns=900 * MS),
        health_line({}, "w0", FIRST_SECOND + 1, cpu_pct=100.0, span_ns=100 * MS),
    )
    assert run.generator.worker_cpu_pct == pytest.approx(46.0)


@pytest.mark.parametrize(
    ("cpu_pct", "lag_ms", "text"),
    [
        (89.9, 0.1, None),
        (90.0, 0.1, "worker w1 used 90.0 % of a core"),
        (50.0, 3.9, None),
        (50.0, 4.1, "worker w1's event loop lagged 4.1 ms at p95, beside a latency of 20.0 ms"),
        (
            95.25,
            30.0,
            "worker w1 used 95.2 % of a core; "
            "worker w1's event loop lagged 30.0 ms at p95, beside a latency of 20.0 ms",
        ),
    ],
)
def test_a_client_at_its_limit_taints_the_run(
    tmp_path: Path, cpu_pct: float, lag_ms: float, text: str | None
) -> None:
    busy = health_line({}, "w1", lags_ns=[round(lag_ms * MS)] * 50, cpu_pct=cpu_pct)
    run = with_health(tmp_path, health_line({}, "w0"), busy)
    assert texts(run).get("client-bound") == text
    assert run.tainted == bool(text)


def test_a_lag_that_is_only_the_schedulers_grain_is_no_doubt(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [2 * MS] * 300}, counters=triton(300, 1, MS))
    book.records.append(health_line(tag, "w0", lags_ns=[1_900_000] * 50))
    assert set(texts(folded(book, tmp_path))) == {"few-samples"}


def test_a_few_looks_at_the_event_loop_are_no_evidence(tmp_path: Path) -> None:
    run = with_health(tmp_path, health_line({}, "w0", lags_ns=[6 * MS] * 49))
    assert "client-bound" not in texts(run)
    assert run.generator.loop_lag_p99_ns == pytest.approx(6 * MS, rel=1e-3)


@pytest.mark.parametrize(("stops", "bound"), [(2, False), (3, True)])
def test_long_stops_of_the_loop_count_by_what_events_wait_for_it(
    stops: int, bound: bool, tmp_path: Path
) -> None:
    """Three stops of 200 ms in a second: an event at any moment waits 60 ms for the loop, on average."""
    run = with_health(tmp_path, health_line({}, "w0", lags_ns=[200 * MS] * stops + [0] * 200))
    assert ("client-bound" in texts(run)) is bound
    if bound:
        assert run.generator.loop_delay_ns == pytest.approx(60 * MS, rel=1e-3)
        waited = "events waited 60.0 ms for worker w0's loop, beside a mean latency of 20.0 ms"
        assert texts(run)["client-bound"] == waited


def test_threads_beside_the_loops_own_are_not_judged(tmp_path: Path) -> None:
    beside = {"cpu_pct": 130.0, "loop_ran_ns": 500 * MS, "cpu_wait_ns": 100 * MS, "span_ns": 1_000 * MS}
    run = with_health(tmp_path, health_line({}, "w0", **beside))
    assert (run.generator.worker_cpu_pct, run.generator.loop_cpu_pct, run.generator.awake_pct) == (
        130.0,
        50.0,
        60.0,
    )
    assert "client-bound" not in texts(run)


def test_the_loops_own_thread_is_judged(tmp_path: Path) -> None:
    own = {"cpu_pct": 85.0, "loop_ran_ns": 950 * MS, "cpu_wait_ns": 0, "span_ns": 1_000 * MS}
    run = with_health(tmp_path, health_line({}, "w0", **own))
    assert texts(run)["client-bound"] == "worker w0 used 95.0 % of a core"


def test_what_a_loop_used_and_waited_for_is_of_one_worker(tmp_path: Path) -> None:
    lines = [
        health_line({}, "w0", loop_ran_ns=550 * MS, cpu_wait_ns=0, span_ns=1_000 * MS),
        health_line({}, "w1", loop_ran_ns=50 * MS, cpu_wait_ns=410 * MS, span_ns=1_000 * MS),
    ]
    run = with_health(tmp_path, *lines)
    assert (run.generator.loop_cpu_pct, run.generator.cpu_wait_pct, run.generator.awake_pct) == (
        55.0,
        41.0,
        55.0,
    )


def test_health_without_its_parts_is_unknown_not_zero(tmp_path: Path) -> None:
    bare = health_line({}, "w0", cpu_pct=None, lag="", gc_max_ns=None, in_flight=None, users=None)
    run = with_health(tmp_path, bare)
    assert (
        run.generator.worker_cpu_pct,
        run.generator.loop_lag_p99_ns,
        run.generator.gc_max_ns,
        run.generator.in_flight,
    ) == (None,) * 4


def test_phases_of_the_client_are_means_and_none_where_not_measured(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 4})
    for record in book.records:
        if record["kind"] == "window" and record["phase"] == "measure":
            record["histograms"] |= {"send": encoded([MS, MS // 2]), "wait": encoded([1_500_000] * 2)}
    run = folded(book, tmp_path)
    assert (run.phases.send_ns, run.phases.wait_ns) == (750_000, 1_500_000)
    assert (run.phases.encode_ns, run.phases.receive_ns, run.phases.decode_ns) == (None, None, None)


def test_an_open_load_states_what_it_offered(tmp_path: Path) -> None:
    run = open_run(tmp_path, rate=100, late=3)
    assert (run.load, run.arrivals, run.level, run.cell) == ("open", "constant", 100, "onnx-http/b1/r100")
    # 600 from each of two workers in 12 s
    assert (run.sent.offered_per_s, run.sent.due, run.sent.dropped, run.sent.late) == (100.0, 1_200, 0, 6)
    assert set(texts(run)) == {"few-samples"}


def test_a_worker_that_had_no_part_in_the_phase_does_not_hide_the_others(tmp_path: Path) -> None:
    book = Book()
    tag = book.add_open("onnx-http", 100, LOADS, counters=triton(1_200, 1, MS))
    idle = {"sent": 0, "phase_ns": 0, "due": None, "dropped": None}
    book.records.append(drained_line(tag, "w2", 0, 0) | idle)
    run = folded(book, tmp_path)
    assert (run.sent.offered_per_s, run.sent.due, run.sent.dropped) == (100.0, 1_200, 0)


def test_a_closed_load_offers_nothing(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 2, LOADS)
    for record in book.records:
        if record["kind"] == "drained":
            record |= {"sent": 600, "phase_ns": 6_000 * MS, "due": None, "dropped": None}
    run = folded(book, tmp_path)
    assert (run.arrivals, run.sent.offered_per_s, run.sent.due, run.sent.dropped) == ("", None, None, None)


def test_dropped_arrivals_taint(tmp_path: Path) -> None:
    run = open_run(tmp_path, dropped=2)
    assert texts(run)["dropped-arrivals"] == (
        "4 of 1,204 arrivals were never sent: the slowest are missing from the percentiles"
    )
    assert run.tainted


@pytest.mark.parametrize(("late", "text"), [(6, None), (7, "14 of 1,200 requests (1.17 %) began more than")])
def test_more_than_a_hundredth_of_late_starts_is_a_doubt_and_no_taint(
    tmp_path: Path, late: int, text: str | None
) -> None:
    run = open_run(tmp_path, late=late)
    assert texts(run).get("late-arrivals", "").startswith(text or "")
    assert ("late-arrivals" in texts(run), run.tainted) == (bool(text), False)


@pytest.mark.parametrize(
    ("rate", "arrivals", "phase_s", "missed"),
    [
        (100, "constant", 12.0, False),
        (101, "constant", 12.0, False),
        (98.9, "constant", 12.0, True),
        (102, "constant", 12.0, True),
        # Poisson arrivals of 12 s vary by 3 × √(110 / 12) = 9.1 a second
        (109, "poisson", 12.0, False),
        (110, "poisson", 12.0, True),
    ],
)
def test_a_missed_rate_taints(
    tmp_path: Path, rate: float, arrivals: str, phase_s: float, missed: bool
) -> None:
    run = open_run(tmp_path, rate=rate, arrivals=arrivals, phase_s=phase_s)
    assert run.arrivals == arrivals
    assert run.sent.offered_per_s == pytest.approx(1_200 / phase_s)
    assert ("rate-missed" in texts(run), run.tainted) == (missed, missed)


@pytest.mark.parametrize(
    ("level", "arrivals", "allowed"),
    # 1 % · one request on each of two workers in 10 s · 3 × √(40 / 10)
    [(100.0, "constant", 1.0), (5.0, "constant", 0.2), (40.0, "poisson", 6.0)],
)
def test_a_rate_may_differ_by_what_means_nothing(level: float, arrivals: str, allowed: float) -> None:
    offered = Offered(per_s=level, workers=2, phase_s=10.0)
    assert allowed_per_s({"level": level, "arrivals": arrivals}, offered) == pytest.approx(allowed)


def test_a_missed_rate_says_both_rates(tmp_path: Path) -> None:
    run = open_run(tmp_path, rate=150, phase_s=12.0)
    assert texts(run)["rate-missed"] == "100 requests a second were sent, 150 were asked for"


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


def test_requests_that_began_late_though_users_were_free_are_the_clients_doing(tmp_path: Path) -> None:
    free, busy = late_run(tmp_path / "a", 31), late_run(tmp_path / "b", 30)
    assert texts(free)["client-bound"] == (
        "62 of 1,200 requests began late while users were free, 9.0 ms at p95 beside a latency of 20.0 ms"
    )
    assert "client-bound" not in texts(busy)


def late_run(folder: Path, overslept: int) -> Summary:
    """Requests of 20 ms, each 9 ms late, on each of two workers so many of them by its own fault."""
    book = Book()
    book.add_open("onnx-http", 100, LOADS, counters=triton(1_200, 1, MS))
    for record in book.records:
        if record["kind"] == "window" and record["histograms"]:
            record["histograms"]["send_delay"] = encoded([9 * MS] * record["ok"])
        if record["kind"] == "drained":
            record["overslept"] = overslept
    return folded(book, folder)
