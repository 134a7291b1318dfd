"""The conductor walks the runs of a study: prepare, spawn, warm up, measure under the same load, drain."""

from collections.abc import Mapping
from typing import Any

from swarm.distributed.protocol import PARTING_S
from swarm.errors import RunFailedError, StudyError
from swarm.plan.cell import PlannedRun, Warm, warmed_by
from swarm.plan.schedule import Outcome, Pace, Schedule
from swarm.study.dependencies import Dependencies
from swarm.study.run_phases import RunLog, RunPhases, Terms
from swarm.study.steady import Steadiness
from users.backends.asking import counted, requests_in
from users.errors import RequestError

PREPARE_S = 60.0
STEP_S = 1.0
"""A clock that is further off than this was set; before that it was at most disciplined."""
WARM_UP_REQUESTS = 5
"""As in the published study; and at least two a user."""
RAMP_S, LINK_RAMP_S = 0.5, 3.0
"""The least time that users of a run send before it is measured: the server is warm, but connections are new,
and over a link grow what they carry for some seconds.
"""


class Conductor:
    """Walks runs in order and writes what happened; a run that fails does not end the study."""

    def __init__(self, deps: Dependencies, schedule: Schedule, terms: Terms) -> None:
        self._deps = deps
        self._schedule = schedule
        self._terms = terms
        self._log = RunLog(deps.collector.write, deps.clock, deps.utc)
        self._current: RunPhases | None = None
        self._step_s = 0.0
        self._warm = set[Warm]()
        """What has been warmed up since its model was loaded."""

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
                self._warm = {key for key in self._warm if key[0] != endpoint.shares}
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
        """Until the server is steady, the first time; later until each of the run's users has sent twice.

        Users go on sending until the drain.
        """
        run, cell, collector = current.run, current.run.cell, self._deps.collector
        each = WARM_UP_REQUESTS if cell.open else 2 * cell.users
        least = max(WARM_UP_REQUESTS, each)
        steady = Steadiness(self._terms.warm_up_s)
        warm = warmed_by(run.to_record())
        if warm in self._warm:
            ramp_s = LINK_RAMP_S if cell.link else RAMP_S
            current.send("warm-up", lambda sent, s: sent >= each and s >= ramp_s)
        else:
            current.send("warm-up", lambda sent, s: sent >= least and steady.over(self._deps.fold, s))
            self._warm.add(warm)
            if steady.doubt:
                self._log.caveat(run, "unsteady", steady.doubt)
        if collector.ok == 0:
            raise RunFailedError("no request succeeded in the warm-up, so nothing was measured")
        if collector.failed:
            sent = collector.ok + collector.failed
            self._log.caveat(run, "warm-up-failures", f"{collector.failed} of {sent} requests failed")

    def _measure(self, current: RunPhases) -> None:
        """The phase that counts, between two readings of the server's own counters, all under one load."""
        cell = current.run.cell
        current.mark()
        before = self._read_server(current.run, "before")
        # A profile is over when its time is, whatever came of its requests.
        least, seconds = (0, cell.course.seconds) if cell.course else (cell.requests, cell.seconds)
        current.send("measure", lambda sent, passed: sent >= least and passed >= seconds)
        if cell.course:  # after it a load has no level to be kept at
            current.settle(self._terms.drain_s)
        succeeded = self._deps.collector.ok if cell.course else current.cool_down()
        self._read_server(current.run, "after", before + succeeded)
        if not cell.course:
            current.settle(self._terms.drain_s)
        self._look_at_clock(current.run)
        self._read_memory(current.run, "after")
        if found := self._deps.traced(current.run):
            self._log.add("trace", current.run, **found.to_record())
            if found.gap:
                self._log.caveat(current.run, "trace-gap", found.gap)

    def _read_server(self, run: PlannedRun, when: str, least: int = 0) -> int:
        """Write the counters once they hold `least` requests, or patience ends; the requests they hold."""
        reading = counted(lambda: self._deps.probe(run.cell.endpoint), least, self._deps.sleep)
        self._log.add("server", run, when=when, t_ns=round(self._deps.clock() * 1e9), **reading)
        return requests_in(reading)

    def _read_memory(self, run: PlannedRun, when: str) -> None:
        if held := self._deps.memory(run.cell.endpoint):
            self._log.add("memory", run, when=when, **held)
