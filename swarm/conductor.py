"""The conductor walks the runs of a study: prepare, spawn, warm up, measure, drain, next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swarm import progress
from swarm.errors import RunFailedError, StudyError
from swarm.hands import Hands
from swarm.plan import Run

PREPARE_S = 60.0
ACKNOWLEDGE_S = 10.0
STALL_S = 30.0
"""A phase in which nothing has finished for this long beyond the request timeout is given up."""
PARTING_S = 4.0
POLL_S = 0.02
SETTLE_S = 0.05
SETTLE_TRIES = 20
WARM_UP_REQUESTS = 5
"""As the seeds did; and at least two a user."""


class Conductor:
    """Walks runs in order and writes what happened; a run that fails does not end the study."""

    def __init__(self, hands: Hands, runs: Sequence[Run], request_timeout_s: float) -> None:
        self._hands = hands
        self._runs = list(runs)
        self._drain_s = request_timeout_s + ACKNOWLEDGE_S
        self._stall_s = request_timeout_s + STALL_S
        self._current: Run | None = None
        self._measuring = False
        self._workers: list[str] = []
        self.doubtful: set[Run] = set()
        """Runs that failed, were cut short, or were not carried by the workers and users they should have."""

    def walk(self) -> None:
        """All runs. Raises StudyError where no worker is left."""
        began = self._hands.clock()
        for number, run in enumerate(self._runs, 1):
            self._run(run)
            self._tell(number, run, self._hands.clock() - began)

    def abort(self, note: str) -> None:
        """End the run that is under way, if any, within seconds, and keep what it has measured."""
        if self._current is not None:
            self._settle(PARTING_S)
            self._end("aborted", note)

    def _run(self, run: Run) -> None:
        self._begin(run)
        try:
            self._check_server(run)
            self._measure(run)
        except RunFailedError as failure:
            self._settle(self._drain_s)
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
        self._settle(self._drain_s)
        if collector.ok == 0:
            raise RunFailedError("no request succeeded in the warm-up, so nothing was measured")
        if collector.failed:
            sent = collector.ok + collector.failed
            self._write_caveat(run, "warm-up-failures", f"{collector.failed} of {sent} requests failed")
        self._read_server(run, "before")
        self._measuring = True
        self._phase(run, "measure", cell.requests, cell.seconds)
        self._settle(self._drain_s)
        self._read_server(run, "after")

    def _phase(self, run: Run, phase: str, requests: int, seconds: float) -> None:
        """Let the users send until `requests` have finished, all workers together, and `seconds` are over."""
        hands, collector = self._hands, self._hands.collector
        collector.begin_phase(run.cell.name, run.repeat, phase)
        self._write_phase(run, phase)
        self._ask("phase", {"phase": phase}, ACKNOWLEDGE_S)
        began = moved = hands.clock()
        finished = 0
        while finished < requests or hands.clock() < began + seconds:
            self._watch(run)
            hands.sleep(POLL_S)
            if collector.ok + collector.failed > finished:
                finished, moved = collector.ok + collector.failed, hands.clock()
            if hands.clock() > moved + self._stall_s:
                raise RunFailedError(
                    f"nothing finished for {self._stall_s:g} s in the {phase}, so it was given up"
                )

    def _settle(self, patience_s: float) -> None:
        """Stop sending and wait for what is in flight; after a measure phase, write what each worker says."""
        run = self._current
        assert run is not None
        if self._measuring:
            self._write_phase(run, "drain")
        crew = self._hands.crew
        answers = crew.ask("drain", {"patience_s": patience_s}, patience_s + ACKNOWLEDGE_S)
        if self._measuring:
            for worker, reply in answers.replies.items():
                self._write("drained", worker=crew.name(worker), **self._tag(run), phase="measure", **reply)
            users = sum(reply["users"] for reply in answers.replies.values())
            if users != run.cell.level:
                self._doubt(run, "users-missing", f"{users} of {run.cell.level} users finished a request")
        self._measuring = False
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
        """Notice what dies, and who comes, while a phase runs."""
        self._check_server(run)
        if self._hands.collector.fault:
            raise StudyError(self._hands.collector.fault)
        now = self._hands.crew.workers()
        self._note_lost(run, [worker for worker in self._workers if worker not in now])
        for worker in (worker for worker in now if worker not in self._workers):
            self._workers.append(worker)
            self._doubt(run, "worker-joined", f"worker {self._hands.crew.name(worker)} came in the middle")
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
                self._hands.crew.drop(worker)
                self._doubt(run, "worker-lost", f"worker {self._hands.crew.name(worker)} was lost")

    def _doubt(self, run: Run, code: str, text: str) -> None:
        """A caveat that disqualifies the run."""
        self.doubtful.add(run)
        self._write_caveat(run, code, text)
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
        if status != "done":
            self.doubtful.add(self._current)
        tag = self._tag(self._current)
        self._write("run", event="end", **tag, utc=self._hands.utc(), status=status, note=note)
        self._current = None

    def _tell(self, number: int, run: Run, elapsed_s: float) -> None:
        collector = self._hands.collector
        p50_ns = collector.service_time.get_value_at_percentile(50) * 1e3 if collector.ok else None
        left_s = progress.time_left_s(self._runs[:number], self._runs[number:], elapsed_s)
        sent = collector.ok + collector.failed
        total = len(self._runs)
        self._hands.say(progress.line(number, total, run, sent, collector.failed, p50_ns, left_s))

    def _write_phase(self, run: Run, phase: str) -> None:
        t_ns = round(self._hands.clock() * 1e9)
        self._write("phase", **self._tag(run), phase=phase, utc=self._hands.utc(), t_ns=t_ns)

    def _write_caveat(self, run: Run, code: str, text: str) -> None:
        self._write("caveat", **self._tag(run), code=code, text=text)

    def _write(self, kind: str, **values: Any) -> None:
        self._hands.ledger.write({"kind": kind, **values})

    @staticmethod
    def _tag(run: Run) -> dict[str, Any]:
        return {"cell": run.cell.name, "repeat": run.repeat}
