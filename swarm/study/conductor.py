"""The conductor walks the runs of a study: prepare, spawn, warm up until steady, measure, drain, next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from reports.fold.windows import Results
from reports.histogram import buckets
from swarm.distributed.protocol import PARTING_S
from swarm.errors import RunFailedError, StudyError
from swarm.output.run_fold import RunFold
from swarm.plan.cell import PlannedRun
from swarm.plan.schedule import Outcome, Pace, Schedule
from swarm.study.dependencies import Dependencies
from swarm.study.run_phases import RunLog, RunPhases, Terms
from users.backends.asking import settled
from users.errors import RequestError

PREPARE_S = 60.0
STEP_S = 1.0
"""A clock that is further off than this was set; before that it was at most disciplined."""
WARM_UP_REQUESTS = 5
"""As in the published study; and at least two a user."""
WINDOWS = 3
LEAST_RESULTS = 3
RATE_TOLERANCE = 0.10
TIME_TOLERANCE = 0.20
TIME_SLACK_NS = 500_000
"""Half a millisecond matters to nobody here, and is a large share of a null model's time."""


class Conductor:
    """Walks runs in order and writes what happened; a run that fails does not end the study."""

    def __init__(self, deps: Dependencies, schedule: Schedule, terms: Terms) -> None:
        self._deps = deps
        self._schedule = schedule
        self._terms = terms
        self._log = RunLog(deps.collector.write, deps.clock, deps.utc)
        self._current: RunPhases | None = None
        self._step_s = 0.0

    def walk(self) -> None:
        """All runs of the schedule. Raises StudyError where no worker is left, or the disk is full."""
        planned = self._schedule.planned
        pace, known = Pace(planned, self._deps.clock), len(planned)
        outcome = None
        while run := self._schedule.next(outcome):
            if not planned:
                self._log.planned([run])
                self._deps.say(pace.announcement(run))
            elif len(planned) > known:
                self._log.planned(planned[known:])
                known = len(planned)
            outcome = self._conduct(run)
            self._deps.say(pace.line(outcome) + self._schedule.remark(outcome))
            if self._deps.collector.fault:
                raise StudyError(self._deps.collector.fault)

    def abort(self, note: str) -> None:
        """End the run that is under way, if any, within seconds, and keep what it has measured."""
        if self._current is not None:
            self._current.settle(PARTING_S)
            self._end("aborted", note)

    def _conduct(self, run: PlannedRun) -> Outcome:
        current = self._current = RunPhases(run, self._deps, self._log, self._terms)
        try:
            current.check()
            for code, text in self._deps.caveats_of(run.cell.endpoint):
                self._log.caveat(run, code, text)
            for endpoint in self._deps.set_up(run.cell):
                # It had to load its model for that, and is cold again.
                for call in self._deps.first_calls.forget(endpoint):
                    self._log.cold(call)
            self._prepare(current)
            self._warm_up(current)
            self._measure(current)
        except RunFailedError as failure:
            current.settle(self._terms.drain_s)
            self._end("failed", str(failure))
            self._deps.say(f"{run.cell.name}: {failure}")
        else:
            self._end("done", "")
        self._deps.spawn(0)
        return Outcome(run, self._deps.fold.summary())

    def _look_at_clock(self, run: PlannedRun) -> None:
        """Say where the machine's clock was set: ours is as it was, so that seconds stay whole."""
        step_s = self._deps.step_s()
        if abs(step_s - self._step_s) > STEP_S:
            self._log.caveat(
                run, "clock-stepped", f"the master's clock was set by {step_s - self._step_s:+,.0f} s"
            )
            self._step_s = step_s

    def _end(self, status: str, note: str) -> None:
        assert self._current is not None
        self._deps.sampler.end()
        self._log.event(self._current.run, "end", status=status, note=note)
        self._current = None

    def _prepare(self, current: RunPhases) -> None:
        """Every worker has the cell's requests at hand before the users come."""
        run, cell = current.run, current.run.cell
        task = {
            **run.to_record(),
            "endpoint": cell.endpoint.to_dict(),
            "addresses": self._deps.addresses(cell),
            "users": cell.users,
        }
        current.ask("cell", task, PREPARE_S)
        told = self._deps.serving(cell.endpoint)
        self._log.add("serving", run, **told)
        self._read_memory(run, "before")
        self._call_first(run, told)
        self._deps.sampler.begin(cell.name, run.repeat, cell.endpoint)
        self._deps.spawn(cell.users)

    def _call_first(self, run: PlannedRun, serving: Mapping[str, Any]) -> None:
        """The server has seen every batch size that this cell can bring about."""
        try:
            for call in self._deps.first_calls.due(run.cell, serving):
                self._log.cold(call)
        except RequestError as error:
            # Whether it can be measured at all, the warm-up will tell.
            self._deps.say(f"{run.cell.name}: a first request failed ({error})")

    def _warm_up(self, current: RunPhases) -> None:
        """Until the server is steady, or as long as a warm-up may take."""
        run, cell, collector = current.run, current.run.cell, self._deps.collector
        least = WARM_UP_REQUESTS if cell.open else max(WARM_UP_REQUESTS, 2 * cell.users)
        steady = Steadiness(self._terms.warm_up_s)
        current.send("warm-up", lambda sent, s: sent >= least and steady.over(self._deps.fold, s))
        current.settle(self._terms.drain_s)
        if collector.ok == 0:
            raise RunFailedError("no request succeeded in the warm-up, so nothing was measured")
        if steady.doubt:
            self._log.caveat(run, "unsteady", steady.doubt)
        if collector.failed:
            sent = collector.ok + collector.failed
            self._log.caveat(run, "warm-up-failures", f"{collector.failed} of {sent} requests failed")

    def _measure(self, current: RunPhases) -> None:
        """The phase that counts, between two readings of the server's own counters."""
        cell = current.run.cell
        self._read_server(current.run, "before")
        # A profile is over when its time is, whatever came of its requests.
        least, seconds = (0, cell.course.seconds) if cell.course else (cell.requests, cell.seconds)
        current.send("measure", lambda sent, passed: sent >= least and passed >= seconds)
        current.settle(self._terms.drain_s)
        self._read_server(current.run, "after")
        self._look_at_clock(current.run)
        self._read_memory(current.run, "after")
        if found := self._deps.traced(current.run):
            self._log.add("trace", current.run, **found.to_record())
            if found.gap:
                self._log.caveat(current.run, "trace-gap", found.gap)

    def _read_server(self, run: PlannedRun, when: str) -> None:
        reading = settled(lambda: self._deps.probe(run.cell.endpoint), self._deps.sleep)
        self._log.add("server", run, when=when, **reading)

    def _read_memory(self, run: PlannedRun, when: str) -> None:
        if held := self._deps.memory(run.cell.endpoint):
            self._log.add("memory", run, when=when, **held)


@dataclass(frozen=True)
class Slice:
    """Whole seconds in a row with enough results to judge."""

    seconds: int
    finished: int
    p95_ns: float

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return self.finished / self.seconds


def doubt(seconds: Sequence[Results], compute_ns: Sequence[float]) -> str:
    """Why the server cannot be called steady yet, or nothing.

    `compute_ns`: the server's compute time per execution in each second that had one; empty where it does not
    say. Steady: the last three windows agree on throughput within 10 % (and one request, which an edge may
    cut), and on the 95th percentile within 20 %; so do the last three compute times.
    """
    if len(seconds) < WINDOWS:
        return f"too few seconds for {WINDOWS} windows"
    slices = sliced(seconds)[-WINDOWS:]
    if len(slices) < WINDOWS:
        return f"too few results for {WINDOWS} windows"
    rates, p95s_ns = [found.per_s for found in slices], [found.p95_ns for found in slices]
    edge = max(1 / found.seconds for found in slices)
    if spread(rates) > RATE_TOLERANCE * median(rates) + edge:
        return f"throughput still moves: {listed(rates)} requests/s"
    if spread(p95s_ns) > TIME_TOLERANCE * median(p95s_ns) + TIME_SLACK_NS:
        return f"p95 still moves: {listed([value / 1e6 for value in p95s_ns])} ms"
    last_ns = compute_ns[-WINDOWS:]
    if compute_ns and len(last_ns) < WINDOWS:
        return f"too few compute times for {WINDOWS} windows"
    if last_ns and spread(last_ns) > TIME_TOLERANCE * median(last_ns) + TIME_SLACK_NS:
        return f"the server's compute time still moves: {listed([value / 1e6 for value in last_ns])} ms"
    return ""


class Steadiness:
    """Ends a warm-up: once the server is steady, or after `cap_s`, and then with a doubt."""

    def __init__(self, cap_s: float) -> None:
        self._cap_s = cap_s
        self._judged = -1
        self.doubt = "not judged"

    def over(self, fold: RunFold, elapsed_s: float) -> bool:
        """Whether the warm-up may end; judged anew with each complete second."""
        if fold.complete != self._judged:
            self._judged = fold.complete
            self.doubt = doubt(fold.latest, fold.compute_ns)
        if self.doubt and elapsed_s >= self._cap_s:
            self.doubt = f"not steady after {self._cap_s:g} s of warm-up: {self.doubt}"
            return True
        return not self.doubt


def sliced(seconds: Sequence[Results]) -> list[Slice]:
    """Seconds joined from the last one backwards, until each slice has enough results; oldest first."""
    slices: list[Slice] = []
    held: list[Results] = []
    for second in reversed(seconds):
        held.append(second)
        finished = sum(one.finished for one in held)
        (p95_ns,) = buckets.percentiles_ns(buckets.together(one.histogram("latency") for one in held), [95.0])
        if finished >= LEAST_RESULTS and p95_ns is not None:
            slices.insert(0, Slice(len(held), finished, p95_ns))
            held = []
        if len(slices) == WINDOWS:
            break
    return slices


def spread(values: Sequence[float]) -> float:
    """The greatest difference."""
    return max(values) - min(values)


def listed(values: Sequence[float]) -> str:
    """`14.1, 18.2, 12`."""
    return ", ".join(f"{value:.3g}" for value in values)
