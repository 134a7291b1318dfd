"""A conductor on fakes of everything it acts through, with a clock of its own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.fold.windows import Results
from reports.histogram import codec
from reports.ledger.ledger import LedgerWriter, Record, Tag
from swarm.distributed.workers import Answers, seated
from swarm.errors import RunFailedError
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import Outcome, Schedule
from swarm.sampling.triton_trace import Joined
from swarm.study.conductor import Conductor
from swarm.study.dependencies import Dependencies
from swarm.study.run_phases import Terms
from swarm.targets.cold_start import FirstCalls
from tests.reading import read_ledger
from tests.swarm.fakes import FakeClock
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError

HTTP = Endpoint("a-http", "onnx", "http", "fp32", "h:1", "m")
GRPC = Endpoint("b-grpc", "trt", "grpc", "fp32", "h:2", "m")


def second(ms: int) -> Results:
    """A complete second whose requests took so long."""
    return Results(ok=10, histograms={"latency": codec.decoded(codec.encoded_ns([ms * 1_000_000] * 10)[0])})


STEADY = [second(20)] * 12
SPEEDING_UP = [second(60 - 3 * at) for at in range(12)]


Group = PlannedRun | tuple[PlannedRun, ...]
"""A run, or several for the same time."""


class FixedSchedule(Schedule):
    """Some runs, one after the other, or several at the same time."""

    def __init__(self, runs: Sequence[Group]) -> None:
        groups = [run if isinstance(run, tuple) else (run,) for run in runs]
        self.planned = tuple(run for group in groups for run in group)
        self._to_come = iter(groups)

    def next(self, outcomes: Sequence[Outcome]) -> Sequence[PlannedRun]:
        return next(self._to_come, ())


@dataclass
class FakeRun:
    """Complete seconds, as many as asked for."""

    latest: list[Results] = field(default_factory=list)
    compute_ns: list[float] = field(default_factory=list)

    @property
    def complete(self) -> range:
        return range(len(self.latest))


class FakeFold:
    """What is known of each run."""

    def __init__(self) -> None:
        self.runs: defaultdict[Tag, FakeRun] = defaultdict(FakeRun)

    def of(self, tag: Tag) -> FakeRun:
        return self.runs[tag]

    def summary(self, tag: Tag) -> None:
        """Nothing is known of it."""


class FakeCollector:
    """Every tick of the clock, the users of each run finish `rate` requests while a phase sends."""

    def __init__(self, ledger: LedgerWriter) -> None:
        self._ledger = ledger
        self.counts: dict[Tag, list[int]] = {}
        """Successes and failures of the runs under way."""
        self.rate, self.fail_rate = 1, 0
        self.rates: dict[str, int] = {}
        """Of cells that have another rate."""
        self.phases: list[tuple[str, int, str]] = []
        self.fault = ""
        self.heard: dict[str, float] = {}
        self.fold = FakeFold()
        self.steady_after, self.seconds = 0, STEADY

    def write(self, record: dict[str, Any]) -> None:
        self._ledger.write(record)

    def begin_phase(self, runs: Iterable[Tag], phase: str) -> None:
        self.counts = {tag: [0, 0] for tag in runs}
        self.phases += [(*tag, phase) for tag in self.counts]
        self.fold.runs.clear()

    def ok(self, tag: Tag) -> int:
        return self.counts[tag][0]

    def failed(self, tag: Tag) -> int:
        return self.counts[tag][1]

    def tick(self) -> None:
        for tag, count in self.counts.items():
            count[0] += self.rates.get(tag[0], self.rate)
            count[1] += self.fail_rate
            if sum(count) > self.steady_after:
                self.fold.of(tag).latest = self.seconds


class FakeSampler:
    """What it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, cell: str, repeat: int, endpoint: Endpoint) -> None:
        self.told.append(f"begin {cell}")

    def enter(self, phase: str) -> None:
        self.told.append(phase)

    def end(self) -> None:
        self.told.append("end")


class FakeWorkers:
    """Answers at once; `errors` by operation, `present` who is there."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.on_ask: Callable[[str], None] = lambda op: None
        self.errors: dict[str, str] = {}
        self.present = ["host1_a", "host2_b"]
        self.chosen = [*self.present, "host3_c"]
        self.sent_home: list[str] = []
        self.strays: list[str] = []
        """Who comes in the middle of a cell that names its workers."""
        self.missing: set[str] = set()
        self.users = 1
        self.cells = 1
        """Of the run under way."""
        self.dropped: int | None = None
        self.loses: dict[str, str] = {}
        """Who is lost while it is asked, by operation."""

    def taking_part(self) -> list[str]:
        return [worker for worker in self.present if worker in self.chosen]

    def alive(self) -> list[str]:
        return list(self.present)

    def keep_seats(self) -> list[str]:
        return [self.strays.pop()] if self.strays else []

    def choose(self, workers: int, hosts: int) -> None:
        by_host = {self.host(worker): [worker] for worker in self.present}
        self.chosen = [*seated(by_host, workers, hosts), "host3_c"]

    def host(self, worker: str) -> str:
        return worker.partition("_")[0]

    def drop_missing(self) -> None:
        self.present = [worker for worker in self.present if worker not in self.missing]

    def name(self, worker: str) -> str:
        return {"host1_a": "w0", "host2_b": "w1", "host3_c": "w2"}[worker]

    def drop(self, worker: str) -> None:
        self.sent_home.append(worker)
        self.present = [other for other in self.present if other != worker]

    def ask(self, op: str, data: Mapping[str, Any], patience_s: float) -> Answers:
        self.asked.append((op, dict(data)))
        self.on_ask(op)
        if op in self.loses:
            self.present.remove(self.loses.pop(op))
            return Answers(op, {worker: {} for worker in self.present}, lost=["host2_b"])
        if op in self.errors:
            return Answers(op, {worker: {"error": self.errors[op]} for worker in self.present})
        if op == "cell":
            self.cells = len(data["cells"])
        drained = {"users": self.users, "finished": 5, "abandoned": 0, "dropped": self.dropped}
        told = {"drain": {"parts": [drained] * self.cells}, "cool_down": {"succeeded": [5] * self.cells}}
        return Answers(op, {worker: dict(told.get(op, {})) for worker in self.present})


class Stand:
    """A conductor and all its fakes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.jsonl"
        self.ledger = LedgerWriter(self.path)
        self.ledger.write({"kind": "header", "version": 1})
        self.clock, self.collector, self.workers = FakeClock(), FakeCollector(self.ledger), FakeWorkers()
        self.sampler = FakeSampler()
        self.clock.on_tick = self.tick
        self.silent: set[str] = set()
        self.spawned: list[tuple[int, ...]] = []
        """The users of each cell, time by time; none ends all."""
        self.said: list[str] = []
        self.dead: set[str] = set()
        self.served: list[int] = []
        self.called: list[tuple[str, int]] = []
        self.refused: set[int] = set()
        """Batch sizes that no first request gets an answer to."""
        self.first_calls = FirstCalls(self.call)
        self.traced: Joined | None = None
        self.held: list[dict[str, Any]] = []
        """What the server holds in memory, reading by reading."""
        self.settings: dict[int, str] = {}
        """By instances: nothing where the server is set so by a reload, or why it cannot be."""
        self.set: list[int] = []
        self.known: list[tuple[str, str]] = []
        """Caveats of every endpoint."""
        self.step_s = 0.0
        """By how much the master's clock has been set."""
        self.computed: dict[str, int] = {}
        """Nanoseconds that the server at an address says it has computed."""
        self.steps: dict[str, dict[str, Any]] = {}
        """What it counts of the steps of a model."""
        self.stopped = ""
        """Why a threshold stops the study."""

    def tick(self) -> None:
        """Users finish requests, and every worker that is not silent is heard of."""
        self.collector.tick()
        self.collector.heard |= {w: self.clock() for w in self.workers.present if w not in self.silent}

    def conductor(self, *runs: Group, schedule: Schedule | None = None) -> Conductor:
        deps = Dependencies(
            workers=self.workers,  # type: ignore[arg-type]
            collector=self.collector,  # type: ignore[arg-type]
            fold=self.collector.fold,  # type: ignore[arg-type]
            sampler=self.sampler,  # type: ignore[arg-type]
            spawn=lambda *counts: self.spawned.append(counts),
            probe=self.probe,
            serving=lambda endpoint: {"instances": 1},
            traced=lambda run: self.traced,
            first_calls=self.first_calls,
            server_fault=self.server_fault,
            addresses=lambda cell: {"host1": "198.18.0.1"} if cell.link else {},
            stopped=lambda: self.stopped,
            say=self.said.append,
            clock=self.clock,
            sleep=self.clock.sleep,
            wall_ns=lambda: 1_000_000_000,
            utc=lambda: "then",
            step_s=lambda: self.step_s,
            set_up=self.set_up,
            caveats_of=lambda endpoint: self.known,
            memory=lambda endpoint: self.held.pop(0) if self.held else {},
        )
        return Conductor(deps, schedule or FixedSchedule(runs), Terms(request_s=60, warm_up_s=10, seed=3))

    def probe(self, endpoint: Endpoint) -> dict[str, Any]:
        """The counters of a server."""
        requests = self.served.pop(0) if self.served else 7
        told = {"requests": requests, "compute_ns": self.computed.get(endpoint.address, 0)}
        return {"counters": told | {"steps": self.steps.get(endpoint.model, {})}}

    def set_up(self, cell: Cell) -> list[Endpoint]:
        self.set.append(cell.instances)
        if refused := self.settings.get(cell.instances):
            raise RunFailedError(refused)
        return [cell.endpoint] if cell.instances in self.settings else []

    def call(self, endpoint: Endpoint, size: int) -> int:
        self.called.append((endpoint.name, size))
        if size in self.refused:
            raise RequestError(ErrorKind.TIMEOUT, "no answer")
        return 40_000_000 if len(self.called) % 2 else 4_000_000

    def server_fault(self, backend: str) -> str:
        return f"the embedded {backend} server died" if backend in self.dead else ""

    def records(self) -> list[Record]:
        return list(read_ledger(self.path).records)


def a_run(endpoint: Endpoint = HTTP, requests: int = 10, seconds: float = 0, level: int = 2) -> PlannedRun:
    return PlannedRun(Cell(endpoint, 4, level, requests, seconds), 1)
