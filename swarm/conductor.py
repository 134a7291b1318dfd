"""The conductor walks the runs of a study: prepare, spawn, warm up, measure, drain, next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from reports.ledger import LedgerWriter
from swarm import progress
from swarm.collector import Collector
from swarm.crew import Crew
from swarm.errors import RunFailedError, StudyError
from swarm.plan import Run
from users.endpoint import Endpoint

PREPARE_S = 60.0
ACKNOWLEDGE_S = 10.0
PHASE_CAP_S = 600.0
PARTING_S = 4.0
POLL_S = 0.02
SETTLE_S = 0.05
SETTLE_TRIES = 20
WARM_UP_REQUESTS = 5
"""As the seeds did; and at least two a user."""


@dataclass
class Hands:
    """What the conductor acts through; tests pass fakes."""

    crew: Crew
    collector: Collector
    ledger: LedgerWriter
    spawn: Callable[[int, Endpoint], None]
    probe: Callable[[Endpoint], dict[str, Any]]
    server_fault: Callable[[str], str]
    say: Callable[[str], None]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    utc: Callable[[], str] = field(default=lambda: datetime.now(UTC).isoformat().replace("+00:00", "Z"))


class Conductor:
    """Walks runs in order and writes what happened; a run that fails does not end the study."""

    def __init__(self, hands: Hands, runs: Sequence[Run], request_timeout_s: float) -> None:
        self._hands = hands
        self._runs = list(runs)
        self._drain_s = request_timeout_s + ACKNOWLEDGE_S
        self._current: Run | None = None
        self._measuring = False
        self._workers: list[str] = []
        self.unfinished = 0
        """Runs that failed or were cut short."""

    def walk(self) -> None:
        """All runs. Raises StudyError where no worker is left."""
        began = self._hands.clock()
        for number, run in enumerate(self._runs, 1):
            self._run(run)
            collector = self._hands.collector
            p50_us = collector.service_time.get_value_at_percentile(50) if collector.ok else None
            left_s = progress.time_left_s(
                self._runs[:number], self._runs[number:], self._hands.clock() - began
            )
            p50_ns = p50_us * 1e3 if p50_us is not None else None
            total = len(self._runs)
            sent = collector.ok + collector.failed
            self._hands.say(progress.line(number, total, run, sent, collector.failed, p50_ns, left_s))

    def abort(self, note: str) -> None:
        """End the run that is under way, if any, within seconds, and keep what it has measured."""
        if self._current is not None:
            if self._measuring:
                self._write_drained(PARTING_S)
            else:
                self._hands.crew.ask("drain", {"patience_s": PARTING_S}, PARTING_S + ACKNOWLEDGE_S)
            self._end("aborted", note)
            self.unfinished += 1

    def _run(self, run: Run) -> None:
        self._begin(run)
        try:
            self._check_server(run)
            self._measure(run)
        except RunFailedError as failure:
            self.unfinished += 1
            self._end("failed", str(failure))
            self._hands.say(f"{run.cell.name}: {failure}")
        else:
            self._end("done", "")
        self._hands.spawn(0, run.cell.endpoint)

    def _measure(self, run: Run) -> None:
        cell, collector = run.cell, self._hands.collector
        task = {**self._tag(run), "endpoint": cell.endpoint.to_dict(), "batch": cell.batch}
        self._ask("cell", task, PREPARE_S)
        self._hands.spawn(cell.level, cell.endpoint)
        self._phase(run, "warm-up", max(WARM_UP_REQUESTS, 2 * cell.level), 0)
        if collector.ok == 0:
            raise RunFailedError("no request succeeded in the warm-up, so nothing was measured")
        self._ask("drain", {"patience_s": self._drain_s}, self._drain_s + ACKNOWLEDGE_S)
        self._read_server(run, "before")
        self._measuring = True
        self._phase(run, "measure", cell.requests, cell.seconds)
        self._write_drained(self._drain_s)
        self._read_server(run, "after")

    def _phase(self, run: Run, phase: str, requests: int, seconds: float) -> None:
        """Let the users send until `requests` have finished, all workers together, and `seconds` are over."""
        hands = self._hands
        hands.collector.begin_phase(run.cell.name, run.repeat, phase)
        self._write("phase", **self._tag(run), phase=phase, t_ns=round(hands.clock() * 1e9))
        self._ask("phase", {"phase": phase}, ACKNOWLEDGE_S)
        began = hands.clock()
        deadline = began + PHASE_CAP_S
        while hands.collector.ok + hands.collector.failed < requests or hands.clock() < began + seconds:
            self._watch(run)
            if hands.clock() > deadline:
                raise RunFailedError(f"the {phase} took more than {PHASE_CAP_S:g} s and was given up")
            hands.sleep(POLL_S)

    def _write_drained(self, patience_s: float) -> None:
        """Stop sending, wait for what is in flight, and write what each worker says of the phase."""
        run = self._current
        assert run is not None
        self._measuring = False
        self._write("phase", **self._tag(run), phase="drain", t_ns=round(self._hands.clock() * 1e9))
        crew = self._hands.crew
        answers = crew.ask("drain", {"patience_s": patience_s}, patience_s + ACKNOWLEDGE_S)
        for worker, reply in answers.replies.items():
            self._write("drained", worker=crew.name(worker), **self._tag(run), phase="measure", **reply)
        self._note_lost(run, answers.lost)

    def _read_server(self, run: Run, when: str) -> None:
        """Write the server's counters once they stand still: Triton counts a request after answering it."""
        last, now = None, self._hands.probe(run.cell.endpoint)
        for _ in range(SETTLE_TRIES):
            if now == last or "error" in now:
                break
            self._hands.sleep(SETTLE_S)
            last, now = now, self._hands.probe(run.cell.endpoint)
        self._write("server", **self._tag(run), when=when, **now)

    def _watch(self, run: Run) -> None:
        """Notice what dies while a phase runs."""
        self._check_server(run)
        now = self._hands.crew.workers()
        self._note_lost(run, [worker for worker in self._workers if worker not in now])
        if not now:
            raise StudyError("every worker is gone; look at their consoles")

    def _check_server(self, run: Run) -> None:
        fault = self._hands.server_fault(run.cell.endpoint.backend)
        if fault:
            raise RunFailedError(fault)

    def _note_lost(self, run: Run, lost: Sequence[str]) -> None:
        for worker in lost:
            if worker in self._workers:
                self._workers.remove(worker)
                text = f"worker {self._hands.crew.name(worker)} was lost"
                self._write("caveat", **self._tag(run), code="worker-lost", text=text)
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

    def _begin(self, run: Run) -> None:
        self._current, self._measuring = run, False
        self._workers = self._hands.crew.workers()
        names = [self._hands.crew.name(worker) for worker in self._workers]
        hosts = len({worker.rpartition("_")[0] for worker in self._workers})
        self._hands.collector.begin_phase(run.cell.name, run.repeat, "")
        self._write("run", event="start", **self._tag(run), utc=self._hands.utc(), workers=names, hosts=hosts)

    def _end(self, status: str, note: str) -> None:
        assert self._current is not None
        tag = self._tag(self._current)
        self._write("run", event="end", **tag, utc=self._hands.utc(), status=status, note=note)
        self._current = None

    def _write(self, kind: str, **values: Any) -> None:
        if kind == "phase":
            values["utc"] = self._hands.utc()
        self._hands.ledger.write({"kind": kind, **values})

    @staticmethod
    def _tag(run: Run) -> dict[str, Any]:
        return {"cell": run.cell.name, "repeat": run.repeat}
