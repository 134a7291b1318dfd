"""Thresholds that stop a study: only what is certain, of the measure phase, after the seconds asked for."""

from collections.abc import Iterator
from typing import Any

import pytest

from reports.gates.thresholds import parse_gates
from swarm.output.early_stop import EarlyStop, StopReason
from swarm.output.run_fold import RunFold
from swarm.plan.cell import Cell, PlannedRun
from tests.reports.lines import FIRST_SECOND, health_line, window
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import START
from tests.swarm.stand import GRPC, HTTP

MS = 1_000_000
CELL, OTHER = Cell(HTTP, 1, 2, 10, 30), Cell(GRPC, 1, 2, 10, 30)
TAG = {"cell": CELL.name, "repeat": 2}
STARTED = "2026-11-21T11:00:00Z"
P50 = "require = 'latency_p50_ms <= 50'"
Record = dict[str, Any]


class Stopping:
    """An early stop with one threshold, of which lines are given, on the fold that it listens to."""

    def __init__(self, *lines: str, runs: int = 1) -> None:
        gates = parse_gates("\n".join(["[[threshold]]", *lines]), "thresholds.toml")
        self._early_stop, self._clock = EarlyStop(gates.thresholds, runs), FakeClock()
        self._fold = RunFold(self._clock)
        self._fold.listeners.append(self._early_stop.on_second)
        plan = [PlannedRun(cell, 2).to_record() for cell in (CELL, OTHER)]
        self._fold.follow({"plan": plan, "started_utc": STARTED})

    @property
    def stop(self) -> StopReason | None:
        return self._early_stop.stop

    def on_record(self, record: Record) -> None:
        self._clock.now += 1
        self._fold.on_record(record)

    def begin(self, tag: Record) -> None:
        """A run."""
        self.on_record({**START, **tag})


def phase(name: str, tag: Record = TAG) -> Record:
    return {"kind": "phase", **tag, "phase": name, "utc": STARTED}


def seconds(
    latencies_ms: list[int], failures: int = 0, count: int = 20, times: int = 20, **changed: Any
) -> Iterator[Record]:
    """Seconds of a worker, each with these successes so many times over."""
    for at in range(count):
        made = window(TAG, "w0", [ms * MS for ms in latencies_ms] * times, 1)
        yield made | {"second": FIRST_SECOND + at, "failures": {"timeout": failures}} | changed


def stopped_after(found: Stopping, records: Iterator[Record]) -> int | None:
    """How many seconds of a new run's measure phase were over when it was certain; None: it never was."""
    found.begin(TAG)
    found.on_record(phase("measure"))
    for number, record in enumerate(records):
        found.on_record(record)
        if found.stop:
            return number
    return None


@pytest.mark.parametrize(("after_s", "told"), [(0, 5), (3, 5), (12, 12)])
def test_a_bad_run_stops_the_study_once_it_is_certain_and_the_delay_is_over(after_s: int, told: int) -> None:
    found = Stopping(P50, f"abort_after_s = {after_s}")
    assert stopped_after(found, seconds([80, 90, 100])) == told
    assert found.stop is not None
    record = dict(vars(found.stop))
    why = record.pop("why")
    assert record == {"threshold": 1, "require": "latency_p50_ms <= 50", "cell": CELL.name, "repeat": 2}
    assert why.startswith("latency_p50_ms 90.0 ms (95 % CI ")
    assert why.endswith("at most 50.0 ms is required: the study was stopped")


@pytest.mark.parametrize(
    ("latencies_ms", "why"),
    [
        ([10, 20, 30], "it is kept"),
        ([49, 50, 50], "it is just kept"),
    ],
)
def test_a_good_run_goes_on(latencies_ms: list[int], why: str) -> None:
    assert stopped_after(Stopping(P50, "abort_after_s = 1"), seconds(latencies_ms)) is None, why


def test_what_is_beyond_but_not_certain_goes_on() -> None:
    found = Stopping("require = 'failure_ratio <= 0.1'", "abort_after_s = 1")
    assert stopped_after(found, seconds([10], failures=1, count=8, times=6)) is None


def test_failures_stop_a_study_in_which_nothing_succeeds() -> None:
    found = Stopping("require = 'failure_ratio <= 0.1'", "abort_after_s = 1")
    assert stopped_after(found, seconds([], failures=9)) == 5
    assert found.stop is not None
    assert found.stop.why.startswith("failure_ratio 100 % ")


def test_where_nothing_may_fail_the_first_failure_is_certain() -> None:
    found = Stopping("require = 'failure_ratio <= 0'", "abort_after_s = 0")
    records = list(seconds([10]))
    records[7]["failures"] = {"timeout": 1}
    assert stopped_after(found, iter(records)) == 8


def test_failures_are_beyond_every_bound_on_a_latency() -> None:
    found = Stopping("require = 'latency_p99_ms <= 50'", "abort_after_s = 1")
    assert stopped_after(found, seconds([], failures=90)) == 5
    assert found.stop is not None
    assert found.stop.why.startswith("latency_p99_ms above any limit (95 % CI above any limit to above any")
    some = Stopping("require = 'latency_p99_ms <= 50'", "abort_after_s = 1")
    assert stopped_after(some, seconds([10], failures=20, count=60)) is not None
    few = Stopping("require = 'latency_p90_ms <= 50'", "abort_after_s = 1")
    assert stopped_after(few, seconds([10], failures=1, count=60)) is None


def test_only_the_measure_phase_counts() -> None:
    found = Stopping(P50, "abort_after_s = 1")
    good = (record | {"second": record["second"] + 20} for record in seconds([10]))
    assert stopped_after(found, iter([*seconds([80], phase="warm-up"), *good])) is None


def test_each_run_is_judged_by_itself() -> None:
    found = Stopping(P50, "abort_after_s = 1")
    assert stopped_after(found, seconds([900], count=4)) is None
    later = (record | {"second": record["second"] + 6} for record in seconds([900], count=4))
    assert stopped_after(found, later) is None
    late = list(seconds([80], cell=OTHER.name))
    assert stopped_after(found, iter(late)) is None, "windows of another run"


def test_a_second_that_is_told_again_counts_once() -> None:
    found = Stopping("require = 'failure_ratio <= 0.1'", "abort_after_s = 12")
    first, *others = seconds([10], failures=90)
    again = {**first, "ok": 0, "failures": {}, "histograms": {}}
    records = [{**first, "failures": {}}, *others[:3], again, *others[3:]]
    assert stopped_after(found, iter(records)) == 13
    assert found.stop is not None
    failed = 11 * 90
    assert found.stop.why.startswith(f"failure_ratio {100 * failed / (12 * 20 + failed):.1f} % ")


def test_cells_that_a_threshold_is_not_of_go_on() -> None:
    assert stopped_after(Stopping(P50, "abort_after_s = 1", "endpoint = 'b-*'"), seconds([80])) is None


def test_a_run_that_was_planned_later_is_known() -> None:
    later = Cell(HTTP, 1, 3, 10, 30)
    tag = {"cell": later.name, "repeat": 1}
    found = Stopping(P50, "abort_after_s = 1")
    found.on_record({"kind": "plan", "runs": [PlannedRun(later, 1).to_record()]})
    found.begin(tag)
    found.on_record(phase("measure", tag))
    for record in seconds([80], **tag):
        found.on_record(record)
    assert found.stop is not None
    assert found.stop.cell == later.name


def test_a_generator_that_is_slow_itself_says_nothing_of_the_server() -> None:
    found = Stopping(P50, "abort_after_s = 1")
    busy = [health_line(TAG, "w0", FIRST_SECOND + at, cpu_pct=99.0) for at in range(20)]
    both = [record for pair in zip(seconds([80], failures=9), busy, strict=True) for record in pair]
    assert stopped_after(found, iter(both)) is None
    failing = Stopping("require = 'failure_ratio <= 0.01'", "abort_after_s = 1")
    assert stopped_after(failing, iter(both)) is not None, "what fails is not slow"


def test_workers_are_taken_together_and_tell_of_empty_seconds_too() -> None:
    found = Stopping(P50, "abort_after_s = 1")
    both = [record | {"worker": worker} for record in seconds([80], count=5) for worker in ("w0", "w1")]
    assert stopped_after(found, iter(both)) is None, "the fifth second is not over"
    found.on_record(health_line(TAG, "w0", FIRST_SECOND + 5))
    assert found.stop is None, "w1 has not told of the second after it"
    found.on_record(health_line(TAG, "w1", FIRST_SECOND + 5))
    assert found.stop is not None


def test_it_is_looked_at_every_five_seconds_from_the_delay_on() -> None:
    found = Stopping("require = 'latency_p99_ms <= 50'", "abort_after_s = 7")
    records = [*seconds([10], count=8), *seconds([900], count=60)]
    for at, record in enumerate(records):
        record["second"] = FIRST_SECOND + at
    after = stopped_after(found, iter(records))
    assert after is not None
    assert (after - 7) % 5 == 0
    assert after > 7


def test_the_more_runs_there_are_the_less_each_is_stopped_for() -> None:
    slow = [49, 60, 85, 85, 86]
    few, many = (
        stopped_after(Stopping(P50, "abort_after_s = 1", runs=runs), seconds(slow, count=60))
        for runs in (1, 1_000)
    )
    assert few is not None
    assert many is not None
    assert few < many


def test_a_long_phase_has_several_seconds_in_a_block_and_counts_them_all() -> None:
    found = Stopping("require = 'failure_ratio <= 0.1'", "abort_after_s = 700")
    records = [*seconds([10], count=350, failures=1), *seconds([10], count=400, failures=30)]
    for at, record in enumerate(records):
        record["second"] = FIRST_SECOND + at
    assert stopped_after(found, iter(records)) == 700
    assert found.stop is not None
    failed = 350 + 350 * 30
    assert found.stop.why.startswith(f"failure_ratio {100 * failed / (700 * 20 + failed):.1f} % ")


@pytest.mark.parametrize("slow", [CELL, OTHER])
def test_of_two_runs_at_the_same_time_the_bad_one_stops_the_study(slow: Cell) -> None:
    found = Stopping(P50, "abort_after_s = 0")
    tags = [{"cell": cell.name, "repeat": 2} for cell in (CELL, OTHER)]
    for tag in tags:
        found.begin(tag)
    for tag in tags:
        found.on_record(phase("measure", tag))
    stopped = list[int]()
    for at in range(20):
        for tag in tags:
            each_ms = 90 if tag["cell"] == slow.name else 10
            found.on_record(window(tag, "w0", [each_ms * MS] * 60, 1) | {"second": FIRST_SECOND + at})
        stopped += [at] if found.stop else []
    assert found.stop is not None
    assert (found.stop.cell, stopped[0]) == (slow.name, 5), "as soon as where it runs alone"
