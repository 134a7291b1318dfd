"""The conductor walks the runs of a study: prepare, spawn, warm up, measure, drain, next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports.histogram import codec
from swarm.backends.statistics import settled
from swarm.errors import RunFailedError, StudyError
from swarm.plan.cell import Run
from swarm.plan.eta import Pace
from swarm.plan.schedule import Outcome, Programme
from swarm.study.dependencies import Hands
from swarm.study.run_log import Notes
from swarm.study.run_phases import Terms, UnderWay
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

    def __init__(self, hands: Hands, programme: Programme, terms: Terms) -> None:
        self._hands = hands
        self._programme = programme
        self._terms = terms
        self._notes = Notes(hands.collector.write, hands.clock, hands.utc)
        self._current: UnderWay | None = None
        self._step_s = 0.0

    @property
    def doubtful(self) -> set[Run]:
        """Runs that a study should not rest on."""
        return self._notes.doubtful

    def walk(self) -> None:
        """All runs of the programme. Raises StudyError where no worker is left, or the disk is full."""
        planned = self._programme.planned
        pace, known = Pace(planned, self._hands.clock), len(planned)
        outcome = None
        while run := self._programme.next(outcome):
            if not planned:
                self._notes.planned([run])
                self._hands.say(pace.announcement(run))
            elif len(planned) > known:
                self._notes.planned(planned[known:])
                known = len(planned)
            outcome = self._conduct(run)
            self._hands.say(pace.line(outcome) + self._programme.remark(outcome))
            if self._hands.collector.fault:
                raise StudyError(self._hands.collector.fault)

    def abort(self, note: str) -> None:
        """End the run that is under way, if any, within seconds, and keep what it has measured."""
        if self._current is not None:
            self._current.settle(PARTING_S)
            self._end("aborted", note)

    def _conduct(self, run: Run) -> Outcome:
        missing = self._choose(run)
        current = self._current = UnderWay(run, self._hands, self._notes, self._terms)
        try:
            current.check(missing)
            for code, text in self._hands.doubts(run.cell.endpoint):
                self._notes.caveat(run, code, text)
            self._set_up(run)
            self._prepare(current)
            self._warm_up(current)
            self._measure(current)
        except RunFailedError as failure:
            current.settle(self._terms.drain_s)
            self._end("failed", str(failure))
            self._hands.say(f"{run.cell.name}: {failure}")
        else:
            self._end("done", "")
        self._hands.spawn(0, run.cell.endpoint)
        return self._outcome(current)

    def _look_at_clock(self, run: Run) -> None:
        """Say where the machine's clock was set: ours is as it was, so that seconds stay whole."""
        step_s = self._hands.step_s()
        if abs(step_s - self._step_s) > STEP_S:
            self._notes.caveat(
                run, "clock-stepped", f"the master's clock was set by {step_s - self._step_s:+,.0f} s"
            )
            self._step_s = step_s

    def _choose(self, run: Run) -> str:
        """Seat the cell's workers; what is missing, or nothing."""
        try:
            self._hands.crew.choose(run.cell.workers, run.cell.hosts)
        except RunFailedError as missing:
            return str(missing)
        return ""

    def _outcome(self, current: UnderWay) -> Outcome:
        """What came of the measure phase; nothing where the run did not come so far."""
        run, collector = current.run, self._hands.collector
        if not current.measured:
            return Outcome(run, False, 0, 0, 0, codec.empty())
        finished, sound = collector.ok + collector.failed, run not in self.doubtful
        return Outcome(run, sound, finished, collector.failed, current.dropped, collector.latency)

    def _end(self, status: str, note: str) -> None:
        assert self._current is not None
        self._hands.sampler.end()
        self._notes.end(self._current.run, status, note)
        self._current = None

    def _set_up(self, run: Run) -> None:
        """The server is as the cell says; one that had to load its model for that is cold again."""
        for endpoint in self._hands.set_up(run.cell):
            for call in self._hands.first_calls.forget(endpoint):
                self._notes.cold(call)

    def _prepare(self, current: UnderWay) -> None:
        """Every worker has the cell's requests at hand before the users come."""
        run, cell = current.run, current.run.cell
        task = {
            "cell": cell.name,
            "repeat": run.repeat,
            "endpoint": cell.endpoint.to_dict(),
            "addresses": self._hands.addresses(cell),
            "batch": cell.batch,
            "users": cell.users,
            "channels": cell.channels,
            "client": cell.client,
        }
        current.ask("cell", task, PREPARE_S)
        told = self._hands.serving(cell.endpoint)
        self._notes.serving(run, told)
        self._notes.memory(run, "before", self._hands.memory(cell.endpoint))
        self._call_first(run, told)
        self._hands.sampler.begin(cell.name, run.repeat, cell.endpoint)
        self._hands.spawn(cell.users, cell.endpoint)

    def _call_first(self, run: Run, serving: Mapping[str, Any]) -> None:
        """The server has seen every batch size that this cell can bring about."""
        try:
            for call in self._hands.first_calls.due(run.cell, serving):
                self._notes.cold(call)
        except RequestError as error:
            # Whether it can be measured at all, the warm-up will tell.
            self._hands.say(f"{run.cell.name}: a first request failed ({error})")

    def _warm_up(self, current: UnderWay) -> None:
        """Until the server is steady, or as long as a warm-up may take."""
        run, cell, collector = current.run, current.run.cell, self._hands.collector
        least = WARM_UP_REQUESTS if cell.open else max(WARM_UP_REQUESTS, 2 * cell.users)
        steady = Steadiness(self._terms.warm_up_s)
        current.send("warm-up", lambda sent, s: sent >= least and steady.over(collector.pulse, s))
        current.settle(self._terms.drain_s)
        if collector.ok == 0:
            raise RunFailedError("no request succeeded in the warm-up, so nothing was measured")
        if steady.doubt:
            self._notes.caveat(run, "unsteady", steady.doubt)
        if collector.failed:
            sent = collector.ok + collector.failed
            self._notes.caveat(run, "warm-up-failures", f"{collector.failed} of {sent} requests failed")

    def _measure(self, current: UnderWay) -> None:
        """The phase that counts, between two readings of the server's own counters."""
        cell = current.run.cell
        self._read_server(current.run, "before")
        # A profile is over when its time is, whatever came of its requests.
        least, seconds = (0, cell.course.seconds) if cell.course else (cell.requests, cell.seconds)
        current.send("measure", lambda sent, passed: sent >= least and passed >= seconds)
        current.settle(self._terms.drain_s)
        self._read_server(current.run, "after")
        self._look_at_clock(current.run)
        self._notes.memory(current.run, "after", self._hands.memory(cell.endpoint))
        if found := self._hands.traced(current.run):
            self._notes.traced(current.run, found)

    def _read_server(self, run: Run, when: str) -> None:
        reading = settled(lambda: self._hands.probe(run.cell.endpoint), self._hands.sleep)
        self._notes.counters(run, when, reading)
