"""The fold of the runs under way: when its seconds are told, how often, and with which figures."""

from collections.abc import Sequence

import pytest

from reports.ledger.ledger import Record, tag_of
from swarm.output import run_fold
from swarm.output.run_fold import WAIT_S, FollowedRun, LiveSecond, RunFold
from tests.reports.lines import FIRST_SECOND, health_line, phase_line, sample_line, window
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import END, START
from tests.swarm.web_stand import MS, a_book, second_of, tagged

BOOK = a_book(repeats=2)
TAG = tagged(BOOK)
STEP_S = 0.5
Told = tuple[int, int, float | None]
"""A second, counted from the first, its revision, and its images."""


class Follower:
    """A fold, told records half a second apart; `told` are the seconds that it told of."""

    def __init__(self, *workers: str) -> None:
        self.clock, self.told = FakeClock(), list[LiveSecond]()
        self.fold = RunFold(self.clock)
        self.fold.listeners.append(self.told.append)
        self.fold.follow(BOOK.header)
        self.tell({**START, **TAG, "workers": list(workers or ("w0",))})

    @property
    def followed(self) -> FollowedRun:
        """The run under way."""
        found = self.fold.of(tag_of(TAG))
        assert found is not None
        return found

    def tell(self, *records: Record, step_s: float = STEP_S) -> list[Told]:
        """What is told while these come."""
        before = len(self.told)
        for record in records:
            self.clock.now += step_s
            self.fold.on_record(record)
        return [(one.at - FIRST_SECOND, one.revision, one.row.images_per_s) for one in self.told[before:]]


def done(worker: str, at: int, count: int = 2) -> Record:
    """So many images of a worker in a second."""
    return window(TAG, worker, [40 * MS] * count, 1) | {"second": FIRST_SECOND + at}


def test_a_second_is_told_once_every_worker_has_told_of_a_later_one() -> None:
    run = Follower("w0", "w1")
    assert run.tell(done("w0", 0), done("w1", 0, 3), done("w0", 1), done("w0", 2)) == []
    assert run.tell(done("w1", 1)) == [(0, 0, 5)]
    assert run.tell(done("w1", 2)) == [(1, 0, 4)]


def test_it_waits_for_the_sampler_as_for_a_worker() -> None:
    run = Follower()
    assert run.tell(sample_line(TAG, FIRST_SECOND - 1), done("w0", 0), done("w0", 1)) == []
    assert run.tell(sample_line(TAG, FIRST_SECOND)) == [(-1, 0, None)]
    assert run.tell(sample_line(TAG, FIRST_SECOND + 1)) == [(0, 0, 2)]
    assert [one.sample and one.sample["second"] - FIRST_SECOND for one in run.told] == [-1, 0]


def test_a_worker_that_is_silent_is_not_waited_for() -> None:
    run = Follower("w0", "w1")
    assert run.tell(*(done("w0", at) for at in range(9)), step_s=1) == []
    assert run.tell(done("w0", 9), done("w0", 10), step_s=1) == [(at, 0, 2) for at in range(10)]


def test_nothing_is_held_longer_than_it_is_waited_for() -> None:
    """A worker whose clock is an hour behind: its own seconds are told, and so are those of others."""
    run = Follower("w0", "w1")
    pairs = [(done("w0", at), done("w1", at - 3_600)) for at in range(40)]
    found = run.tell(*(record for pair in pairs for record in pair))
    last = max(at for at, *_ in found)
    assert last >= 40 - WAIT_S - 2
    assert {at for at, *_ in found} >= set(range(last)) | set(range(-3_600, -3_600 + 20))


@pytest.mark.parametrize("by", [1, 3, 25])
def test_a_clock_that_is_ahead_takes_no_second_from_the_others(by: int) -> None:
    run = Follower("w0", "w1")
    pairs = [(done("w0", by + at), done("w1", at, 3)) for at in range(40)]
    run.tell(*(record for pair in pairs for record in pair), {**END, **TAG})
    found = {one.at - FIRST_SECOND: one.row.images_per_s for one in run.told}
    assert (found[0], found[by - 1], found[by], found[39]) == (3, 3, 5, 5)
    assert (len(found), run.fold.late) == (40 + by, 0)
    assert {one.revision for one in run.told} == ({0} if by < WAIT_S else {0, 1})


def test_what_comes_later_tells_its_second_again_whole() -> None:
    run = Follower()
    assert run.tell(done("w0", 0), done("w0", 1)) == [(0, 0, 2)]
    assert run.tell(done("w1", 0, 3), done("w1", 2), done("w0", 2)) == [(0, 1, 5), (1, 0, 2)]
    assert run.tell(done("w1", 0, 1)) == [(0, 2, 6)]
    assert run.fold.late == 0


def test_at_a_runs_end_all_is_told_and_what_comes_then_before_the_next_run_begins() -> None:
    run = Follower()
    assert run.tell(done("w0", 0), done("w0", 1), {**END, **TAG}) == [(0, 0, 2), (1, 0, 2)]
    second = {**TAG, "repeat": 2}
    assert run.tell(done("w0", 1), {**START, **second}, step_s=0.01) == [(1, 1, 4)]
    assert run.tell(done("w0", 1)) == []
    assert run.fold.late == 1


def test_of_a_long_run_the_last_seconds_are_held_and_what_is_older_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_fold, "KEPT", 3)
    run = Follower()
    run.tell(*(done("w0", at) for at in range(10)))
    assert run.tell(done("w0", 5), done("w0", 5), done("w0", 6)) == [(6, 1, 4)]
    assert run.fold.late == 2
    (held,) = {id(one.run): one.run for one in run.told}.values()
    assert sorted(at - FIRST_SECOND for at in held.seconds) == [5, 6, 7, 8, 9]
    summary = run.fold.summary(tag_of(TAG))
    assert summary is not None
    assert summary.counts.images == 26, "all count"


def rows(*seconds: Sequence[Record]) -> list[LiveSecond]:
    run = Follower()
    run.tell(phase_line(TAG, "measure", "2026-11-21T11:00:00Z"))
    run.tell(*(record for second in seconds for record in second), {**END, **TAG})
    return run.told


def test_a_seconds_row_is_that_of_the_timeline() -> None:
    counted = {"requests": 10, "successes": 10, "images": 10, "executions": 5, "queue_ns": 0, "compute_ns": 0}
    later = counted | {"requests": 20, "successes": 20, "images": 20, "executions": 10}
    gpus = [{"id": "a", "util_pct": 91.5, "memory_bytes": 2_000_000_000, "power_w": 300.0}]
    first, second = rows(
        [*second_of(TAG, 0, [40 * MS] * 100, server=counted)],
        [*second_of(TAG, 1, [40 * MS] * 90 + [80 * MS] * 10, server=later, gpus=gpus, pending_requests=3)],
    )
    assert (first.row.t_s, second.row.t_s, second.row.utc) == (0, 1, "2026-11-21T11:00:01Z")
    assert (first.row.cell, first.row.repeat, first.row.phase) == ("onnx-grpc/b1/c2", 1, "measure")
    assert (second.row.images_per_s, second.row.failures_per_s) == (100, 0)
    assert second.row.latency_p50_ns == pytest.approx(40 * MS, rel=1e-3)
    assert second.row.latency_p95_ns == pytest.approx(80 * MS, rel=1e-3)
    assert (second.row.in_flight, second.row.users, second.row.worker_cpu_pct) == (4, 4, 40.0)
    assert (first.row.executed_batch, second.row.executed_batch) == (None, 2.0)
    assert (second.row.gpu_util_pct, second.row.pending_requests) == (91.5, 3)
    assert set(second.here.results["measure"].histograms) == {"latency", "service_time", "send_delay"}


def test_what_is_not_known_is_none_and_never_zero() -> None:
    (second,) = rows([sample_line(TAG, FIRST_SECOND)])
    known = {name for name, value in vars(second.row).items() if value is not None}
    assert known == {"t_s", "utc", "cell", "repeat", "phase", "endpoint", "width_s"}


def test_a_worker_that_does_nothing_still_tells_of_its_seconds() -> None:
    (second,) = rows([health_line(TAG, "w0")])
    assert (second.row.requests_per_s, second.row.latency_p50_ns, second.here.phases) == (
        0,
        None,
        {"measure"},
    )


def test_a_run_that_was_not_planned_is_refused() -> None:
    with pytest.raises(ValueError, match="never/planned was not planned"):
        Follower().tell({**START, **TAG, "cell": "never/planned"})


def test_a_summary_is_made_once_of_the_same_records() -> None:
    run = Follower()
    run.tell(done("w0", 0))
    first = run.fold.summary(tag_of(TAG))
    assert first is not None
    assert first.counts.images == 2
    assert run.fold.summary(tag_of(TAG)) is first
    run.tell(done("w0", 1))
    second = run.fold.summary(tag_of(TAG))
    assert second is not None
    assert second.counts.images == 4


def test_without_a_study_nothing_is_followed() -> None:
    fold = RunFold(FakeClock())
    fold.on_record({**START, **TAG})
    assert (fold.of(tag_of(TAG)), fold.summary(tag_of(TAG))) == (None, None)


def in_phase(record: Record, phase: str) -> Record:
    return {**record, "phase": phase}


def test_a_second_of_a_phase_is_complete_when_every_worker_has_told_how_it_fared() -> None:
    run = Follower("w0", "w1")
    run.tell(phase_line(TAG, "warm-up", "2026-11-21T11:00:00Z"))
    seconds = [(worker, at) for at in range(3) for worker in ("w0", "w1")]
    complete = []
    for worker, at in seconds:
        run.tell(in_phase(done(worker, at, 10 + at), "warm-up"))
        run.tell(in_phase(health_line(TAG, worker, FIRST_SECOND + at), "warm-up"))
        complete.append(len(run.followed.complete))
    assert complete == [0, 0, 0, 1, 1, 2], "the first, in which the phase began, is not counted"
    assert [second.ok for second in run.followed.latest] == [2 * 11, 2 * 12]
    assert [second.histogram("latency").total for second in run.followed.latest] == [22, 24]
    run.tell(in_phase(health_line(TAG, "w2", FIRST_SECOND + 1), "warm-up"))
    assert (len(run.followed.complete), run.followed.latest) == (0, []), "one that comes later begins later"


def test_a_phase_begins_with_its_first_window() -> None:
    run = Follower()
    run.tell(phase_line(TAG, "measure", "2026-11-21T11:00:00Z"), done("w0", 0))
    run.tell(*(health_line(TAG, "w0", FIRST_SECOND + at) for at in (1, 2)))
    assert [at - FIRST_SECOND for at in run.followed.complete] == [1, 2]


def test_a_phase_begins_afresh_and_what_comes_late_of_the_one_before_is_not_of_it() -> None:
    run = Follower()
    run.tell(phase_line(TAG, "warm-up", "2026-11-21T11:00:00Z"))
    run.tell(*(in_phase(health_line(TAG, "w0", FIRST_SECOND + at), "warm-up") for at in range(9)))
    assert len(run.followed.complete) == 8
    run.tell(phase_line(TAG, "measure", "2026-11-21T11:00:09Z"))
    run.tell(done("w0", 9, 5))
    run.tell(*(in_phase(health_line(TAG, "w0", FIRST_SECOND + at), "warm-up") for at in (9, 10)))
    assert (len(run.followed.complete), run.followed.latest) == (0, [])


def test_of_a_long_phase_the_latest_seconds_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_fold, "LATEST", 4)
    run = Follower()
    run.tell(phase_line(TAG, "measure", "2026-11-21T11:00:00Z"))
    for at in range(0, 30, 3):
        counted = {"executions": at, "compute_ns": at**2}
        run.tell(done("w0", at, 1 + at), health_line(TAG, "w0", FIRST_SECOND + at))
        run.tell(*(sample_line(TAG, FIRST_SECOND + at + more, server=counted) for more in range(3)))
    assert (len(run.followed.complete), len(run.followed.latest)) == (27, 4)
    assert [second.ok for second in run.followed.latest] == [25, 0, 0, 28]
    assert run.followed.compute_ns == [(27**2 - 24**2) / 3]


@pytest.mark.parametrize(
    "told", ["", "executions", "compute_ns", "requests compute_ns", "requests executions"]
)
def test_compute_per_execution_is_unknown_of_a_server_that_does_not_tell_both(told: str) -> None:
    run = Follower()
    run.tell(phase_line(TAG, "measure", "2026-11-21T11:00:00Z"))
    run.tell(
        *(sample_line(TAG, FIRST_SECOND + at, server=dict.fromkeys(told.split(), at)) for at in range(3))
    )
    assert run.followed.compute_ns == []


def test_compute_times_are_between_readings_of_the_phase_in_which_something_ran() -> None:
    run = Follower()
    run.tell(phase_line(TAG, "measure", "2026-11-21T11:00:00Z"))
    readings = [("warm-up", 0, 0), ("measure", 10, 100), ("measure", 20, 300), ("measure", 20, 300)]
    for at, (phase, executions, compute_ns) in enumerate([*readings, ("measure", 22, 400)]):
        counted = {"executions": executions, "compute_ns": compute_ns}
        run.tell(in_phase(sample_line(TAG, FIRST_SECOND + at, server=counted), phase))
    run.tell(sample_line(TAG, FIRST_SECOND + 9, missing=["server: refused"]))
    assert run.followed.compute_ns == [20, 50]


def test_of_records_that_the_report_will_refuse_there_is_no_summary() -> None:
    run = Follower()
    run.tell(done("w0", 0), {"kind": "server", **TAG, "when": "before"}, {**END, **TAG})
    assert run.fold.summary(tag_of(TAG)) is None
    run.tell({**START, **TAG, "repeat": 2}, {**END, **TAG, "repeat": 2})
    found = run.fold.summary((TAG["cell"], 2))
    assert found is not None
    assert (found.repeat, found.counts.requests) == (2, 0)


OTHER = {**TAG, "repeat": 2}
"""A run for the same time, as if it were of another cell."""


def of_other(record: Record) -> Record:
    return {**record, **OTHER}


class TwoRuns(Follower):
    """Of one worker, begun one after the other before either has told of anything."""

    def __init__(self) -> None:
        super().__init__("w0")
        self.tell({**START, **OTHER, "workers": ["w0"]})

    def told_of(self, repeat: int) -> list[Told]:
        """By the run of that number."""
        own = [one for one in self.told if one.run.planned["repeat"] == repeat]
        return [(one.at - FIRST_SECOND, one.revision, one.row.images_per_s) for one in own]


def test_seconds_of_runs_at_the_same_time_are_told_apart() -> None:
    run = TwoRuns()
    for at in range(3):
        run.tell(done("w0", at), of_other(done("w0", at, 5)))
    assert (run.told_of(1), run.told_of(2)) == ([(0, 0, 2), (1, 0, 2)], [(0, 0, 5), (1, 0, 5)])
    run.tell({**END, **TAG}, of_other(done("w0", 3, 7)), {**END, **OTHER})
    assert run.told_of(1) == [(at, 0, 2) for at in range(3)]
    assert run.told_of(2) == [(0, 0, 5), (1, 0, 5), (2, 0, 5), (3, 0, 7)]
    summaries = [run.fold.summary(tag_of(tag)) for tag in (TAG, OTHER)]
    assert [found and (found.repeat, found.counts.images) for found in summaries] == [(1, 6), (2, 22)]
    assert run.fold.late == 0


def test_each_of_several_runs_has_a_phase_of_its_own() -> None:
    run = TwoRuns()
    run.tell(*(phase_line(tag, "measure", "2026-11-21T11:00:00Z") for tag in (TAG, OTHER)))
    for at in range(4):
        run.tell(done("w0", at), health_line(TAG, "w0", FIRST_SECOND + at))
        if at < 3:
            run.tell(of_other(done("w0", at, 9)), health_line(OTHER, "w0", FIRST_SECOND + at))
    other = run.fold.of(tag_of(OTHER))
    assert other is not None
    assert [one.ok for one in run.followed.latest] == [2, 2, 2]
    assert [one.ok for one in other.latest] == [9, 9]


def test_both_are_known_until_the_next_run_begins() -> None:
    run = TwoRuns()
    run.tell(done("w0", 0), of_other(done("w0", 0)), {**END, **TAG}, {**END, **OTHER})
    assert all(run.fold.summary(tag_of(tag)) for tag in (TAG, OTHER))
    run.tell({**START, **TAG})
    assert run.fold.of(tag_of(OTHER)) is None
    run.tell(of_other(done("w0", 1)))
    assert run.fold.late == 1
