"""The conductor walks the runs of a study: prepare, spawn, warm up, measure under the same load, drain.

Most go alone; cells that are measured `together` have their runs at the same time.
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

from reports.fold.server import SEVERAL
from reports.ledger.ledger import Tag
from swarm.distributed.protocol import PARTING_S
from swarm.errors import RunFailedError, StudyError
from swarm.plan.cell import PlannedRun, Warm, warmed_by
from swarm.plan.schedule import Outcome, Pace, Schedule
from swarm.study.dependencies import Dependencies
from swarm.study.run_phases import COUNTING_S, RunLog, RunPhases, Terms
from swarm.study.steady import Steadiness
from users.backends.asking import counted, requests_in
from users.errors import RequestError

PREPARE_S = 60.0
STEP_S = 1.0
"""A clock that is further off than this was set; before that it was at most disciplined."""
WARM_UP_REQUESTS = 5
"""As in the published study; and at least two a user."""
CLOCKS_S = 0.1
"""How much later than the master a worker may come to the end of a trace, whose last request counts, too."""
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
        self._reloaded = dict[Tag, list[str]]()
        """Endpoints whose models were loaded again for a run under way."""
        self._shared = set[Tag]()
        """Runs under way whose model others ask at the same time."""

    def walk(self) -> None:
        """All runs of the schedule. Raises StudyError where no worker is left, or the disk is full."""
        planned = self._schedule.planned
        pace, known = Pace(planned, self._deps.clock), len(planned)
        outcomes: Sequence[Outcome] = ()
        while runs := self._schedule.next(outcomes):
            if not planned:
                self._log.planned(runs)
                self._deps.say(pace.announcement(runs[0]))
            elif len(planned) > known:
                self._log.planned(planned[known:])
                known = len(planned)
            outcomes = self._conduct(runs)
            for outcome in outcomes:
                self._deps.say(pace.line(outcome) + self._schedule.remark(outcome))
            if self._deps.collector.fault:
                raise StudyError(self._deps.collector.fault)

    def abort(self, note: str) -> None:
        """End what is under way, if anything, within seconds, and keep what it has measured."""
        if self._current is not None:
            self._current.settle(PARTING_S)
            self._end("aborted", note)

    def _conduct(self, runs: Sequence[PlannedRun]) -> list[Outcome]:
        """One run, or several at the same time, from workers that are free to workers that are free."""
        current = self._current = RunPhases(runs, self._deps, self._log, self._terms)
        try:
            current.check()
            for run in runs:
                self._set_up(run)
            self._prepare(current)
            self._warm_up(current)
            self._measure(current)
        except RunFailedError as failure:
            current.settle(self._terms.drain_s)
            self._end("failed", str(failure))
            self._deps.say(f"{' and '.join(run.cell.name for run in runs)}: {failure}")
        else:
            self._end("done", "")
        self._deps.spawn()
        return [Outcome(run, self._deps.fold.summary(run.tag)) for run in runs]

    def _set_up(self, run: PlannedRun) -> None:
        for code, text in self._deps.caveats_of(run.cell.endpoint):
            self._log.caveat(run, code, text)
        loaded = self._deps.set_up(run.cell)
        self._reloaded[run.tag] = [endpoint.name for endpoint in loaded]
        for endpoint in loaded:
            # It had to load its model for that, and is cold again.
            for call in self._deps.first_calls.forget(endpoint):
                self._log.cold(call)
            self._warm = {key for key in self._warm if key[0] != endpoint.shares}

    def _look_at_clock(self, runs: Sequence[PlannedRun]) -> None:
        """Say where the machine's clock was set: ours is as it was, so that seconds stay whole."""
        step_s = self._deps.step_s()
        if abs(step_s - self._step_s) <= STEP_S:
            return
        for run in runs:
            self._log.caveat(
                run, "clock-stepped", f"the master's clock was set by {step_s - self._step_s:+,.0f} s"
            )
        self._step_s = step_s

    def _end(self, status: str, note: str) -> None:
        assert self._current is not None
        self._deps.sampler.end()
        for run in self._current.runs:
            self._log.event(run, "end", status=status, note=note)
        self._current = None

    def _prepare(self, current: RunPhases) -> None:
        """Every worker has the cells' requests at hand before the users come."""
        runs = current.runs
        current.ask("cell", {"cells": [self._task(run) for run in runs]}, PREPARE_S)
        for run in runs:
            told = self._deps.serving(run.cell.endpoint)
            loaded = self._reloaded.pop(run.tag, [])
            self._log.add("serving", run, **told, **({"reloaded": loaded} if loaded else {}))
            self._read_memory(run, "before")
            self._call_first(run, told)
        self._shared = self._share_models(runs)
        for run in runs:
            self._deps.sampler.begin(run.cell.name, run.repeat, run.cell.endpoint)
        self._deps.spawn(*(run.cell.users for run in runs))

    def _task(self, run: PlannedRun) -> dict[str, Any]:
        """What a worker must know of a cell."""
        return {
            **run.to_record(),
            **({"trace": run.cell.trace.encode()} if run.cell.trace else {}),
            "endpoint": run.cell.endpoint.to_dict(),
            "addresses": self._deps.addresses(run.cell),
            "users": run.cell.users,
        }

    def _call_first(self, run: PlannedRun, serving: Mapping[str, Any]) -> None:
        """The server has seen every batch that this cell can bring about."""
        try:
            for cell in run.cell.by_batch:
                for call in self._deps.first_calls.due(cell, serving):
                    self._log.cold(call)
        except RequestError as error:
            # Whether it can be measured at all, the warm-up will tell.
            self._deps.say(f"{run.cell.name}: a first request failed ({error})")

    def _warm_up(self, current: RunPhases) -> None:
        """Until the servers are steady, the first time; later until each of a run's users has sent twice.

        Users go on sending until the drain.
        """
        steady = {run.tag: Steadiness(self._terms.warm_up_s) for run in current.runs if self._is_cold(run)}

        def over(run: PlannedRun, sent: int, seconds: float) -> bool:
            cell = run.cell
            each = WARM_UP_REQUESTS if cell.open else 2 * cell.users
            if run.tag in steady:
                enough = sent >= max(WARM_UP_REQUESTS, each)
                return enough and steady[run.tag].over(self._deps.fold.of(run.tag), seconds)
            return sent >= each and seconds >= (LINK_RAMP_S if cell.link else RAMP_S)

        current.send("warm-up", over)
        for run in current.runs:
            self._warm.add(warmed_by(run.to_record()))
            if run.tag in steady and steady[run.tag].doubt:
                self._log.caveat(run, "unsteady", steady[run.tag].doubt)
            self._judge_warm_up(run)

    def _is_cold(self, run: PlannedRun) -> bool:
        return warmed_by(run.to_record()) not in self._warm

    def _judge_warm_up(self, run: PlannedRun) -> None:
        """Raises RunFailedError where nothing succeeded."""
        collector = self._deps.collector
        ok, failed = collector.ok(run.tag), collector.failed(run.tag)
        if ok == 0:
            whose = f" of {run.cell.name}" if run.cell.together else ""
            raise RunFailedError(f"no request{whose} succeeded in the warm-up, so nothing was measured")
        if failed:
            self._log.caveat(run, "warm-up-failures", f"{failed} of {ok + failed} requests failed")

    def _measure(self, current: RunPhases) -> None:
        """The phase that counts, between two readings of the servers' own counters, all under one load."""
        runs, collector = current.runs, self._deps.collector
        current.mark()
        before = [self._read_server(run, "before") for run in runs]
        current.send("measure", _measured)
        course = any(run.cell.fixed_s for run in runs)
        if course:  # after it a load has no level to be kept at
            current.settle(self._terms.drain_s)
        succeeded = [collector.ok(run.tag) for run in runs] if course else current.cool_down()
        for run, counted_before, own in zip(runs, before, succeeded, strict=True):
            self._read_server(run, "after", counted_before + own)
        if not course:
            current.settle(self._terms.drain_s)
        self._look_at_clock(runs)
        for run in runs:
            self._finish(run)

    def _finish(self, run: PlannedRun) -> None:
        self._read_memory(run, "after")
        if found := self._deps.traced(run):
            self._log.add("trace", run, **found.to_record())
            if found.gap:
                self._log.caveat(run, "trace-gap", found.gap)

    def _share_models(self, runs: Sequence[PlannedRun]) -> set[Tag]:
        """Those of some runs whose model others of them ask, too, and which counts the requests of all.

        The steps of an ensemble are models, too. A server that has several addresses shows by its counters,
        which before any load are alike.
        """
        several = runs if runs[1:] else ()
        self._deps.sleep(COUNTING_S if several else 0)
        told = {run.tag: self._deps.probe(run.cell.endpoint).get("counters", {}) for run in several}
        models = {run.tag: {run.cell.endpoint.model, *told[run.tag].get("steps", ())} for run in several}
        return {
            one.tag
            for one, other in permutations(several, 2)
            if models[one.tag] & models[other.tag]
            and (
                one.cell.endpoint.shares == other.cell.endpoint.shares
                or (told[one.tag].get("compute_ns") and told[one.tag] == told[other.tag])
            )
        }

    def _read_server(self, run: PlannedRun, when: str, least: int = 0) -> int:
        """Write the counters once they hold `least` requests, or patience ends; the requests they hold."""
        if run.tag in self._shared:
            reading = {"error": "other requests reached the model meanwhile", "error_kind": SEVERAL}
        else:
            reading = counted(lambda: self._deps.probe(run.cell.endpoint), least, self._deps.sleep)
        self._log.add("server", run, when=when, t_ns=round(self._deps.clock() * 1e9), **reading)
        return requests_in(reading)

    def _read_memory(self, run: PlannedRun, when: str) -> None:
        if held := self._deps.memory(run.cell.endpoint):
            self._log.add("memory", run, when=when, **held)


def _measured(run: PlannedRun, sent: int, seconds: float) -> bool:
    """Whether a run has measured enough; one whose load has a course, when that is over, come what may."""
    cell = run.cell
    if cell.fixed_s:
        return seconds >= cell.fixed_s + (CLOCKS_S if cell.trace else 0)
    return sent >= cell.requests and seconds >= cell.seconds
