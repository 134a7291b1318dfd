"""The conductor walks the runs of a study: prepare, spawn, warm up, measure, drain, next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.histogram import codec
from swarm.backends.statistics import settled
from swarm.errors import RunFailedError, StudyError
from swarm.plan.cell import PlannedRun
from swarm.plan.eta import Pace
from swarm.plan.schedule import Outcome, Schedule
from swarm.study.dependencies import Dependencies
from swarm.study.run_log import RunLog
from swarm.study.run_phases import RunPhases, Terms
from swarm.study.steady_state import Steadiness
from users.errors import RequestError

PREPARE_S = 60.0
PARTING_S = 4.0
STEP_S = 1.0
"""A clock that is further off than this was set; before that it was at most disciplined."""
WARM_UP_REQUESTS = 5
"""As the seeds did; and at least two a user."""


class Conductor:
    """Walks runs in order and writes what happened; a run that fails does not end the study."""

    def __init__(self, deps: Dependencies, schedule: Schedule, terms: Terms) -> None:
        self._deps = deps
        self._schedule = schedule
        self._terms = terms
        self._log = RunLog(deps.collector.write, deps.clock, deps.utc)
        self._current: RunPhases | None = None
        self._step_s = 0.0

    @property
    def doubtful(self) -> set[PlannedRun]:
        """Runs that a study should not rest on."""
        return self._log.doubtful

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
        missing = self._choose(run)
        current = self._current = RunPhases(run, self._deps, self._log, self._terms)
        try:
            current.check(missing)
            for code, text in self._deps.doubts(run.cell.endpoint):
                self._log.caveat(run, code, text)
            self._set_up(run)
            self._prepare(current)
            self._warm_up(current)
            self._measure(current)
        except RunFailedError as failure:
            current.settle(self._terms.drain_s)
            self._end("failed", str(failure))
            self._deps.say(f"{run.cell.name}: {failure}")
        else:
            self._end("done", "")
        self._deps.spawn(0, run.cell.endpoint)
        return self._outcome(current)

    def _look_at_clock(self, run: PlannedRun) -> None:
        """Say where the machine's clock was set: ours is as it was, so that seconds stay whole."""
        step_s = self._deps.step_s()
        if abs(step_s - self._step_s) > STEP_S:
            self._log.caveat(
                run, "clock-stepped", f"the master's clock was set by {step_s - self._step_s:+,.0f} s"
            )
            self._step_s = step_s

    def _choose(self, run: PlannedRun) -> str:
        """Seat the cell's workers; what is missing, or nothing."""
        try:
            self._deps.workers.choose(run.cell.workers, run.cell.hosts)
        except RunFailedError as missing:
            return str(missing)
        return ""

    def _outcome(self, current: RunPhases) -> Outcome:
        """What came of the measure phase; nothing where the run did not come so far."""
        run, collector = current.run, self._deps.collector
        if not current.measured:
            return Outcome(run, False, 0, 0, 0, codec.empty())
        finished, sound = collector.ok + collector.failed, run not in self.doubtful
        return Outcome(run, sound, finished, collector.failed, current.dropped, collector.latency)

    def _end(self, status: str, note: str) -> None:
        assert self._current is not None
        self._deps.sampler.end()
        self._log.end(self._current.run, status, note)
        self._current = None

    def _set_up(self, run: PlannedRun) -> None:
        """The server is as the cell says; one that had to load its model for that is cold again."""
        for endpoint in self._deps.set_up(run.cell):
            for call in self._deps.first_calls.forget(endpoint):
                self._log.cold(call)

    def _prepare(self, current: RunPhases) -> None:
        """Every worker has the cell's requests at hand before the users come."""
        run, cell = current.run, current.run.cell
        task = {
            "cell": cell.name,
            "repeat": run.repeat,
            "endpoint": cell.endpoint.to_dict(),
            "addresses": self._deps.addresses(cell),
            "batch": cell.batch,
            "users": cell.users,
            "channels": cell.channels,
            "client": cell.client,
        }
        current.ask("cell", task, PREPARE_S)
        told = self._deps.serving(cell.endpoint)
        self._log.serving(run, told)
        self._log.memory(run, "before", self._deps.memory(cell.endpoint))
        self._call_first(run, told)
        self._deps.sampler.begin(cell.name, run.repeat, cell.endpoint)
        self._deps.spawn(cell.users, cell.endpoint)

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
        current.send("warm-up", lambda sent, s: sent >= least and steady.over(collector.phase_stats, s))
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
        self._log.memory(current.run, "after", self._deps.memory(cell.endpoint))
        if found := self._deps.traced(current.run):
            self._log.traced(current.run, found)

    def _read_server(self, run: PlannedRun, when: str) -> None:
        reading = settled(lambda: self._deps.probe(run.cell.endpoint), self._deps.sleep)
        self._log.counters(run, when, reading)
