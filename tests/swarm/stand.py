"""A conductor on fakes of everything it acts through, with a clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram

from reports.ledger import LedgerWriter, Record, read_ledger
from swarm.conductor import Conductor
from swarm.crew import Answers
from swarm.hands import Hands
from swarm.plan import Run
from tests.swarm.fakes import FakeClock


class FakeCollector:
    """Every tick of the clock, the users finish `rate` requests while a phase sends."""

    def __init__(self) -> None:
        self.ok = self.failed = 0
        self.rate, self.fail_rate = 1, 0
        self.phases: list[tuple[str, int, str]] = []
        self.fault = ""
        self.service_time = HdrHistogram(1, 1000, 3)

    def begin_phase(self, cell: str, repeat: int, phase: str) -> None:
        self.phases.append((cell, repeat, phase))
        self.ok = self.failed = 0

    def tick(self) -> None:
        self.ok += self.rate
        self.failed += self.fail_rate


class FakeCrew:
    """Answers at once; `errors` by operation, `present` who is there."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.errors: dict[str, str] = {}
        self.present = ["host1_a", "host2_b"]
        self.dropped: list[str] = []
        self.users = 1

    def workers(self) -> list[str]:
        return list(self.present)

    def name(self, worker: str) -> str:
        return {"host1_a": "w0", "host2_b": "w1", "host3_c": "w2"}[worker]

    def drop(self, worker: str) -> None:
        self.dropped.append(worker)

    def ask(self, op: str, data: Mapping[str, Any], patience_s: float) -> Answers:
        self.asked.append((op, dict(data)))
        if op in self.errors:
            return Answers({worker: {"error": self.errors[op]} for worker in self.present})
        drained = {"users": self.users, "finished": 5, "abandoned": 0}
        return Answers({worker: drained if op == "drain" else {} for worker in self.present})


class Stand:
    """A conductor and all its fakes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger.jsonl"
        self.ledger = LedgerWriter(self.path)
        self.ledger.write({"kind": "header", "version": 1})
        self.clock, self.collector, self.crew = FakeClock(), FakeCollector(), FakeCrew()
        self.clock.on_tick = self.collector.tick
        self.spawned: list[tuple[int, str]] = []
        self.said: list[str] = []
        self.dead: set[str] = set()
        self.served: list[int] = []

    def conductor(self, *runs: Run) -> Conductor:
        hands = Hands(
            crew=self.crew,  # type: ignore[arg-type]
            collector=self.collector,  # type: ignore[arg-type]
            ledger=self.ledger,
            spawn=lambda count, endpoint: self.spawned.append((count, endpoint.name)),
            probe=lambda endpoint: {"counters": {"requests": self.served.pop(0) if self.served else 7}},
            server_fault=self.server_fault,
            say=self.said.append,
            clock=self.clock,
            sleep=self.clock.sleep,
            utc=lambda: "then",
        )
        return Conductor(hands, runs, request_timeout_s=60)

    def server_fault(self, backend: str) -> str:
        return f"the embedded {backend} server died" if backend in self.dead else ""

    def records(self) -> list[Record]:
        return list(read_ledger(self.path).records)
