"""One run, or several at the same time: orders and watches their phases, handles losses, writes caveats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from swarm.clock import NS_PER_S
from swarm.distributed.workers import RunWorkers
from swarm.errors import RunFailedError, StudyError
from swarm.plan.cell import PlannedRun
from swarm.study.dependencies import Dependencies
from swarm.targets.cold_start import FirstCall
from users.load.load_profile import base_of
from users.load.profile_text import MOST_S

ACKNOWLEDGE_S = 10.0
STALL_S = 30.0
"""A phase in which nothing has finished for this long beyond the request timeout is abandoned."""
POLL_S = 0.02
COUNTING_S = 0.1
"""A server may count a request so long after its answer came back; Triton does, later on a busy host."""
LEAST_BESIDE_PER_S = 1.0
"""Before and after a trace: one of few requests would be warmed up for hours."""
LEAD_S = 0.05
"""Time for the message that begins an open-loop phase: all workers' schedules start at one moment."""


class RunLog:
    """Lines of one study; `write` takes a record, `clock` and `utc` tell the time."""

    def __init__(
        self, write: Callable[[dict[str, Any]], None], clock: Callable[[], float], utc: Callable[[], str]
    ) -> None:
        self._write, self._clock, self._utc = write, clock, utc

    def planned(self, runs: Sequence[PlannedRun]) -> None:
        """Runs that the header could not know of."""
        self._write({"kind": "plan", "runs": [run.to_record() for run in runs]})

    def event(self, run: PlannedRun, event: str, **values: Any) -> None:
        """A run starts or ends."""
        self.add("run", run, event=event, utc=self._utc(), **values)

    def phase(self, run: PlannedRun, phase: str, start_utc_ns: int = 0) -> None:
        """A phase begins; where its load has a course, at `start_utc_ns` of the wall clock."""
        course = {"start_utc_ns": start_utc_ns} if start_utc_ns else {}
        self.add("phase", run, phase=phase, utc=self._utc(), t_ns=round(self._clock() * 1e9), **course)

    def cold(self, call: FirstCall) -> None:
        """How long the first requests of a batch size took."""
        self._write({"kind": "cold", **call.to_record()})

    def caveat(self, run: PlannedRun, code: str, text: str) -> None:
        """A reason to doubt the run."""
        self.add("caveat", run, code=code, text=text)

    def add(self, kind: str, run: PlannedRun, **values: Any) -> None:
        """A record of the run."""
        self._write({"kind": kind, "cell": run.cell.name, "repeat": run.repeat, **values})


@dataclass(frozen=True)
class Terms:
    """How long a request and a warm-up may take, in seconds; and the seed of random arrivals."""

    request_s: float
    warm_up_s: float
    seed: int

    @property
    def drain_s(self) -> float:
        """How long requests in flight may take to end."""
        return self.request_s + ACKNOWLEDGE_S

    @property
    def stall_s(self) -> float:
        """How long nothing may finish."""
        return self.request_s + STALL_S


class RunPhases:
    """Runs that go together, most often one, from the first question to the workers to the last."""

    def __init__(self, runs: Sequence[PlannedRun], deps: Dependencies, log: RunLog, terms: Terms) -> None:
        self.runs, self._first = runs, runs[0]
        self._deps, self._log, self._terms = deps, log, terms
        self._missing = self._seat()
        self._run_workers = RunWorkers(deps.workers, deps.collector.heard, deps.clock)
        self._measuring = self._cooling = self._short = False
        deps.collector.begin_phase([run.tag for run in runs], "")
        names, places = self._run_workers.names, self._run_workers.places
        for run in runs:
            log.event(run, "start", workers=names, hosts=len(set(places)), places=places)

    def _seat(self) -> str:
        """The cell's workers have a part in the run; what is missing, or nothing."""
        try:
            self._deps.workers.choose(*self._first.cell.topology)
        except RunFailedError as missing:
            return str(missing)
        return ""

    def ask(self, op: str, data: dict[str, Any], patience_s: float) -> Sequence[dict[str, Any]]:
        """Their answers to what is asked of all workers.

        Raises RunFailedError where one cannot do it, StudyError where none answers.
        """
        answers = self._deps.workers.ask(op, data, patience_s)
        self._note_lost(answers.lost)
        if answers.errors:
            raise RunFailedError("; ".join(answers.errors))
        if not answers.replies:
            raise self._nobody(f"no worker answered within {patience_s:g} s")
        return list(answers.replies.values())

    def send(self, phase: str, over: Callable[[PlannedRun, int, float], bool]) -> None:
        """Let the users send until it is `over` for each run, of how many have finished, and the seconds."""
        deps, collector, tags = self._deps, self._deps.collector, [run.tag for run in self.runs]
        course = phase == "measure" and any(run.cell.fixed_s for run in self.runs)
        stall_s = self._terms.stall_s + max(run.cell.quiet_s for run in self.runs)
        start_ns = self._whole_second() if course else 0
        collector.begin_phase(tags, phase)
        deps.sampler.enter(phase)
        for run in self.runs:
            self._log.phase(run, phase, start_ns)
        self._measuring, self._cooling = phase == "measure", False
        now_ns = deps.wall_ns()
        start_ns = start_ns or now_ns + self._lead_ns
        began = deps.clock() + (start_ns - now_ns) / 1e9
        self.ask("phase", self._orders(phase, start_ns), ACKNOWLEDGE_S)
        self._run_workers.begin_phase()
        finished, moved = dict.fromkeys(tags, 0), dict.fromkeys(tags, began)
        while left := [run for run in self.runs if not over(run, finished[run.tag], deps.clock() - began)]:
            self._watch()
            deps.sleep(POLL_S)
            now = {tag: collector.ok(tag) + collector.failed(tag) for tag in tags}
            moved |= {tag: deps.clock() for tag in tags if now[tag] != finished[tag]}
            finished = now
            for run in left:
                if deps.clock() > moved[run.tag] + stall_s:
                    whose = f" of {run.cell.name}" if len(self.runs) > 1 else ""
                    given_up = f"nothing{whose} finished for {stall_s:g} s in the {phase}"
                    raise RunFailedError(f"{given_up}, so it was abandoned")

    @property
    def _lead_ns(self) -> int:
        """Time for the message that begins a phase, where workers share a schedule or begin together."""
        shared = len(self.runs) > 1 or self._first.cell.open
        return round(LEAD_S * 1e9 if shared else 0)

    def _whole_second(self) -> int:
        """A whole second of the wall clock that is LEAD_S away: windows and samples are of such seconds, and
        so are then the stages of a load's course.
        """
        deps, lead_ns = self._deps, round(LEAD_S * 1e9)
        now_ns = deps.wall_ns()
        start_ns = -(-(now_ns + lead_ns) // NS_PER_S) * NS_PER_S
        deps.sleep((start_ns - lead_ns - now_ns) / 1e9)
        return start_ns

    def _orders(self, phase: str, start_utc_ns: int) -> dict[str, Any]:
        """What workers must know of a phase; an open-loop schedule is the same for each."""
        return {
            "orders": [orders_of(run, phase, self._terms.seed, self.runs) for run in self.runs],
            "start_utc_ns": start_utc_ns,
        }

    def mark(self) -> None:
        """The server's counters are read next, under load, and then hold all that had come back by now."""
        self.ask("mark", {}, ACKNOWLEDGE_S)
        self._deps.sleep(COUNTING_S)

    def cool_down(self) -> list[int]:
        """End the measure phase, with the load kept on until all its requests have come back; the successes
        of each run.

        So its last requests meet as many others as its first. Raises RunFailedError or StudyError.
        """
        self._end_measuring()
        orders = self._orders("drain", self._deps.wall_ns() + self._lead_ns)
        patience_s = self._terms.drain_s
        replies = self.ask("cool_down", {**orders, "patience_s": patience_s}, patience_s + ACKNOWLEDGE_S)
        told = [reply["succeeded"] for reply in replies if "succeeded" in reply]
        return [sum(each) for each in zip(*told, strict=True)] or [0 for _ in self.runs]

    def _end_measuring(self) -> None:
        if self._cooling:
            return
        self._cooling = True
        for run in self.runs if self._measuring else ():
            self._log.phase(run, "drain")
        self._deps.sampler.enter("drain")

    def settle(self, patience_s: float) -> None:
        """Stop sending and wait for what is in flight; after a measure phase, write what each worker says."""
        self._end_measuring()
        answers = self._deps.workers.ask("drain", {"patience_s": patience_s}, patience_s + ACKNOWLEDGE_S)
        if self._measuring:
            for worker, reply in answers.replies.items():
                self._log_drained(self._deps.workers.name(worker), reply)
            for error in answers.errors:
                self._caveat("results-lost", error)
            self._judge([reply["parts"] for reply in answers.replies.values() if "error" not in reply])
        self._measuring = False
        self._note_lost(answers.lost)

    def _log_drained(self, worker: str, reply: dict[str, Any]) -> None:
        parts = [reply for _ in self.runs] if "error" in reply else reply["parts"]
        for run, told in zip(self.runs, parts, strict=False):
            self._log.add("drained", run, worker=worker, phase="measure", **told)

    def _judge(self, replies: list[list[dict[str, Any]]]) -> None:
        """Was the load as requested?"""
        for number, run in enumerate(self.runs):
            users = sum(parts[number]["users"] for parts in replies if number < len(parts))
            asked = run.cell.users
            # Who thinks for a random time may do so all the while.
            if not run.cell.open and users < asked and not run.cell.thinking.random:
                self._caveat("users-missing", f"{users} of {asked} users finished a request", [run])

    def _watch(self) -> None:
        """Notice losses, and new workers, while a phase runs."""
        self.check()
        self._note_lost(self._run_workers.lost())
        for name in self._run_workers.joined():
            self._short |= len(self.runs) > 1
            self._caveat("worker-joined", f"worker {name} connected during the run")
        for name in self._deps.workers.keep_seats():
            self._short = True
            self._caveat(
                "worker-joined", f"worker {name} connected during a cell for other workers: dismissed"
            )
        if not self._run_workers.ids:
            raise self._nobody("all its workers are lost")
        if self._short and len(self.runs) > 1:
            # Locust does not know whose a lost worker's users were, and with a new one makes all of one cell.
            raise RunFailedError(
                "its workers changed, and cells that run at the same time need the same ones throughout"
            )
        if self._short:
            # The remaining workers carry the full load.
            self._short = False
            self._deps.spawn(self._first.cell.users)
            self.ask("share", {}, ACKNOWLEDGE_S)

    def _nobody(self, text: str) -> RunFailedError | StudyError:
        """The end of the run where others have no part in it and may carry the next ones, or of the study."""
        if self._deps.workers.alive():
            return RunFailedError(f"{text}; check their consoles")
        return StudyError(f"{text}, and there is no other; check their consoles")

    def check(self) -> None:
        """Raises StudyError where the ledger cannot be written or a threshold stops the study, RunFailedError
        where the run cannot go on.
        """
        if self._missing:
            raise RunFailedError(self._missing)
        workers = len(self._run_workers.ids)
        for cell in (run.cell for run in self.runs):
            if cell.open and cell.users < workers:
                raise RunFailedError(
                    f"--max-in-flight {cell.users}: must be at least 1 for each of {workers} workers"
                )
        if self._deps.collector.fault:
            raise StudyError(self._deps.collector.fault)
        if stopped := self._deps.stopped():
            raise StudyError(stopped)
        for run in self.runs:
            if fault := self._deps.server_fault(run.cell.endpoint.shares):
                raise RunFailedError(fault)

    def _note_lost(self, lost: Sequence[str]) -> None:
        for name in self._run_workers.drop(list(lost)):
            self._short = True
            self._caveat("worker-lost", f"worker {name} was lost")

    def _caveat(self, code: str, text: str, runs: Sequence[PlannedRun] = ()) -> None:
        """Of some runs, or of all."""
        for run in runs or self.runs:
            self._log.caveat(run, code, text)
            self._deps.say(f"{run.cell.name}: {text}")


def orders_of(run: PlannedRun, phase: str, seed: int, at_once: Sequence[PlannedRun]) -> dict[str, Any]:
    """What workers must know of a run's phase, one of those `at_once`.

    The order of its requests' classes, and of a schedule that is split, is the same for every endpoint.
    """
    cell = run.cell
    # A warm-up at the peak would trigger the autoscaler before the measurement.
    profile = cell.profile if phase == "measure" else ""
    rate = base_of(cell.level) if cell.profile and not profile else cell.level
    if cell.profile and not profile and not cell.open:
        profile = f"hold:{MOST_S}"
    if cell.trace:  # of the phases beside the measure phase, whose times are the trace's
        rate = max(cell.level, LEAST_BESIDE_PER_S)
    common = f"{seed}/{run.repeat}/{phase}"
    split = {
        "shares": [other.cell.split for other in at_once],
        "part": at_once.index(run),
        "split_seed": f"{common}/split",
    }
    return {
        "phase": phase,
        "arrivals": cell.arrivals,
        "rate": rate / cell.split if cell.split else rate,
        "profile": profile,
        "seconds": cell.fixed_s if phase == "measure" else 0,
        "users": cell.users,
        "seed": f"{seed}/{cell.together if cell.split else cell.name}/{run.repeat}/{phase}",
        "order_seed": f"{common}/order",
        **(split if cell.split else {}),
    }
