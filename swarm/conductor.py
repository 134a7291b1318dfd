"""The conductor walks the runs of a study: prepare, spawn, warm up, measure, drain, next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swarm import progress
from swarm.errors import RunFailedError, StudyError
from swarm.hands import Hands
from swarm.muster import Muster
from swarm.notes import Notes
from swarm.plan import Outcome, Programme, Run
from swarm.settled import settled
from swarm.steady import Verdict

PREPARE_S = 60.0
ACKNOWLEDGE_S = 10.0
STALL_S = 30.0
"""A phase in which nothing has finished for this long beyond the request timeout is given up."""
PARTING_S = 4.0
POLL_S = 0.02
LEAD_S = 0.05
"""Time for the message that begins a phase of open load: all workers' schedules start at one moment."""
WARM_UP_REQUESTS = 5
"""As the seeds did; and at least two a user."""


@dataclass(frozen=True)
class Limits:
    """How long a request and a warm-up may take, in seconds; and the seed of random arrivals."""

    request_s: float
    warm_up_s: float
    seed: int


class Conductor:
    """Walks runs in order and writes what happened; a run that fails does not end the study."""

    def __init__(self, hands: Hands, programme: Programme, limits: Limits) -> None:
        self._hands = hands
        self._programme = programme
        self._limits = limits
        self._drain_s = limits.request_s + ACKNOWLEDGE_S
        self._notes = Notes(hands.collector.write, hands.clock, hands.utc)
        self._muster = Muster(hands.crew, hands.collector.heard, hands.clock)
        self._current: Run | None = None
        self._measuring = False
        self._dropped = 0

    @property
    def doubtful(self) -> set[Run]:
        """Runs that a study should not rest on."""
        return self._notes.doubtful

    def walk(self) -> None:
        """All runs of the programme. Raises StudyError where no worker is left."""
        pace = progress.Pace(self._programme.planned, self._hands.clock)
        outcome = None
        while run := self._programme.next(outcome):
            if not self._programme.planned:
                self._notes.planned(run)
            outcome = self._run(run)
            self._hands.say(pace.line(outcome))
            self._check_ledger()

    def abort(self, note: str) -> None:
        """End the run that is under way, if any, within seconds, and keep what it has measured."""
        if self._current is not None:
            self._settle(PARTING_S)
            self._end("aborted", note)

    def _run(self, run: Run) -> Outcome:
        self._begin(run)
        try:
            self._check_server(run)
            self._warm_up(run)
            self._measure(run)
        except RunFailedError as failure:
            self._settle(self._drain_s)
            self._end("failed", str(failure))
            self._hands.say(f"{run.cell.name}: {failure}")
        else:
            self._end("done", "")
        self._hands.spawn(0, run.cell.endpoint)
        collector, sound = self._hands.collector, run not in self.doubtful
        finished = collector.ok + collector.failed
        return Outcome(run, sound, finished, collector.failed, self._dropped, collector.latency)

    def _begin(self, run: Run) -> None:
        self._current, self._measuring, self._dropped = run, False, 0
        self._muster.begin()
        self._hands.collector.begin_phase(run.cell.name, run.repeat, "")
        self._notes.start(run, self._muster.names, self._muster.hosts)

    def _end(self, status: str, note: str) -> None:
        assert self._current is not None
        self._hands.sampler.end()
        self._notes.end(self._current, status, note)
        self._current = None

    def _warm_up(self, run: Run) -> None:
        """Until the server is steady, or as long as a warm-up may take."""
        cell, collector = run.cell, self._hands.collector
        task = {"cell": cell.name, "repeat": run.repeat, "endpoint": cell.endpoint.to_dict()}
        self._ask("cell", {**task, "batch": cell.batch}, PREPARE_S)
        self._hands.sampler.begin(cell.name, run.repeat, cell.endpoint)
        self._hands.spawn(cell.users, cell.endpoint)
        least = WARM_UP_REQUESTS if cell.open else max(WARM_UP_REQUESTS, 2 * cell.users)
        steady = Verdict(self._limits.warm_up_s)
        self._phase(run, "warm-up", lambda sent, s: sent >= least and steady.over(collector.pulse, s))
        self._settle(self._drain_s)
        if collector.ok == 0:
            raise RunFailedError("no request succeeded in the warm-up, so nothing was measured")
        if steady.doubt:
            self._notes.caveat(run, "unsteady", steady.doubt)
        if collector.failed:
            sent = collector.ok + collector.failed
            self._notes.caveat(run, "warm-up-failures", f"{collector.failed} of {sent} requests failed")

    def _measure(self, run: Run) -> None:
        cell = run.cell
        self._read_server(run, "before")
        self._measuring = True
        self._phase(run, "measure", lambda sent, seconds: sent >= cell.requests and seconds >= cell.seconds)
        self._settle(self._drain_s)
        self._read_server(run, "after")

    def _phase(self, run: Run, phase: str, over: Callable[[int, float], bool]) -> None:
        """Let the users send until it is `over`, which is told how many have finished, and the seconds."""
        hands, collector = self._hands, self._hands.collector
        collector.begin_phase(run.cell.name, run.repeat, phase)
        hands.sampler.enter(phase)
        self._notes.phase(run, phase)
        self._ask("phase", self._orders(run, phase), ACKNOWLEDGE_S)
        self._muster.begin_phase()
        began = moved = hands.clock()
        finished = 0
        stall_s = self._limits.request_s + STALL_S
        while not over(finished, hands.clock() - began):
            self._watch(run)
            hands.sleep(POLL_S)
            if collector.ok + collector.failed > finished:
                finished, moved = collector.ok + collector.failed, hands.clock()
            if hands.clock() > moved + stall_s:
                raise RunFailedError(f"nothing finished for {stall_s:g} s in the {phase}, so it was given up")

    def _orders(self, run: Run, phase: str) -> dict[str, Any]:
        """What workers must know of a phase; the schedule of an open load is the same for each."""
        cell = run.cell
        seed = f"{self._limits.seed}/{cell.name}/{run.repeat}/{phase}"
        start_utc_ns = self._hands.wall_ns() + round(LEAD_S * 1e9) if cell.open else 0
        orders = {"phase": phase, "arrivals": cell.arrivals, "rate": cell.level, "seed": seed}
        return {**orders, "start_utc_ns": start_utc_ns}

    def _settle(self, patience_s: float) -> None:
        """Stop sending and wait for what is in flight; after a measure phase, write what each worker says."""
        run = self._current
        assert run is not None
        if self._measuring:
            self._notes.phase(run, "drain")
        self._hands.sampler.enter("drain")
        answers = self._hands.crew.ask("drain", {"patience_s": patience_s}, patience_s + ACKNOWLEDGE_S)
        if self._measuring:
            for worker, reply in answers.replies.items():
                self._notes.drained(run, self._hands.crew.name(worker), reply)
            self._judge(run, list(answers.replies.values()))
        self._measuring = False
        self._note_lost(run, answers.lost)

    def _judge(self, run: Run, replies: list[dict[str, Any]]) -> None:
        """Was the load what was asked for?"""
        users = sum(reply["users"] for reply in replies)
        if not run.cell.open and users != run.cell.users:
            self._doubt(run, "users-missing", f"{users} of {run.cell.users} users finished a request")
        self._dropped = sum(reply["dropped"] or 0 for reply in replies)

    def _read_server(self, run: Run, when: str) -> None:
        reading = settled(lambda: self._hands.probe(run.cell.endpoint), self._hands.sleep)
        self._notes.counters(run, when, reading)

    def _watch(self, run: Run) -> None:
        """Notice what dies, and who comes, while a phase runs."""
        self._check_server(run)
        self._check_ledger()
        lost = self._muster.lost()
        self._note_lost(run, lost)
        for name in self._muster.joined():
            self._doubt(run, "worker-joined", f"worker {name} came in the middle")
        if not self._muster.workers:
            raise StudyError("every worker is gone; look at their consoles")
        if lost:
            # The load goes on whole, on those that are left.
            self._hands.spawn(run.cell.users, run.cell.endpoint)
            self._ask("share", {}, ACKNOWLEDGE_S)

    def _check_server(self, run: Run) -> None:
        fault = self._hands.server_fault(run.cell.endpoint.backend)
        if fault:
            raise RunFailedError(fault)

    def _check_ledger(self) -> None:
        if self._hands.collector.fault:
            raise StudyError(self._hands.collector.fault)

    def _note_lost(self, run: Run, lost: Sequence[str]) -> None:
        for name in self._muster.drop(list(lost)):
            self._doubt(run, "worker-lost", f"worker {name} was lost")

    def _doubt(self, run: Run, code: str, text: str) -> None:
        self._notes.caveat(run, code, text)
        self._hands.say(f"{run.cell.name}: {text}")

    def _ask(self, op: str, data: dict[str, Any], patience_s: float) -> None:
        """Ask all workers. Raises RunFailedError where one cannot do it."""
        answers = self._hands.crew.ask(op, data, patience_s)
        if answers.errors:
            raise RunFailedError("; ".join(answers.errors))
        if not answers.replies:
            raise StudyError(f"no worker answered within {patience_s:g} s; look at their consoles")
        assert self._current is not None
        self._note_lost(self._current, answers.lost)
