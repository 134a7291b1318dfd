"""What the conductor writes into the ledger about a run, and the runs it has come to doubt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from swarm.plan.cell import PlannedRun
from swarm.sampling.triton_trace import Joined
from swarm.targets.cold_start import FirstCall

DOUBTED = frozenset({"worker-lost", "worker-joined", "users-missing"})
"""Caveats that disqualify a run; the others only warn."""


class RunLog:
    """Lines of one study; `write` takes a record, `clock` and `utc` tell the time."""

    def __init__(
        self, write: Callable[[dict[str, Any]], None], clock: Callable[[], float], utc: Callable[[], str]
    ) -> None:
        self._write, self._clock, self._utc = write, clock, utc
        self.doubtful: set[PlannedRun] = set()
        """Runs that failed, were cut short, or were not carried by the workers and users they should have."""

    def planned(self, runs: Sequence[PlannedRun]) -> None:
        """Runs that the header could not know of."""
        self._write({"kind": "plan", "runs": [run.to_record() for run in runs]})

    def start(self, run: PlannedRun, workers: Sequence[str], hosts: int) -> None:
        """A run begins."""
        self._add("run", run, event="start", utc=self._utc(), workers=list(workers), hosts=hosts)

    def end(self, run: PlannedRun, status: str, note: str) -> None:
        """A run has ended: done, failed or aborted."""
        if status != "done":
            self.doubtful.add(run)
        self._add("run", run, event="end", utc=self._utc(), status=status, note=note)

    def phase(self, run: PlannedRun, phase: str, start_utc_ns: int = 0) -> None:
        """A phase begins; where its load has a course, at `start_utc_ns` of the wall clock."""
        course = {"start_utc_ns": start_utc_ns} if start_utc_ns else {}
        self._add("phase", run, phase=phase, utc=self._utc(), t_ns=round(self._clock() * 1e9), **course)

    def drained(self, run: PlannedRun, worker: str, reply: Mapping[str, Any]) -> None:
        """What a worker says at the end of the measure phase."""
        self._add("drained", run, worker=worker, phase="measure", **reply)

    def counters(self, run: PlannedRun, when: str, reading: Mapping[str, Any]) -> None:
        """The server's counters before or after the measure phase."""
        self._add("server", run, when=when, **reading)

    def serving(self, run: PlannedRun, told: Mapping[str, Any]) -> None:
        """How the server is set up."""
        self._add("serving", run, **told)

    def memory(self, run: PlannedRun, when: str, held: Mapping[str, Any]) -> None:
        """What the server holds in memory, before or after the measure phase; nothing where it is unknown."""
        if held:
            self._add("memory", run, when=when, **held)

    def traced(self, run: PlannedRun, found: Joined) -> None:
        """The measured requests in the server's own trace, and a caveat where too many are missing."""
        self._add("trace", run, **found.to_record())
        if found.gap:
            self.caveat(run, "trace-gap", found.gap)

    def cold(self, call: FirstCall) -> None:
        """How long the first requests of a batch size took."""
        self._write({"kind": "cold", **call.to_record()})

    def caveat(self, run: PlannedRun, code: str, text: str) -> None:
        """A reason to doubt the run."""
        if code in DOUBTED:
            self.doubtful.add(run)
        self._add("caveat", run, code=code, text=text)

    def _add(self, kind: str, run: PlannedRun, **values: Any) -> None:
        self._write({"kind": kind, "cell": run.cell.name, "repeat": run.repeat, **values})
