"""The suite itself as an arm: Locust's runner and the suite's worker in one process, driven by messages.

Everything of a study's worker happens: every phase is recorded, answers are checked (against golden
embeddings too), windows are closed, encoded and packed, health is read and progress told. With `--client
library` tritonclient sends.
"""

from __future__ import annotations

from locust import events
from locust.env import Environment
from locust.rpc.protocol import Message

import argparse
import sys
import time
from dataclasses import replace
from typing import Any

import gevent

from benchmarks.generating.answers import rows
from benchmarks.generating.arm import Told, arm_options, ended, measured, told
from benchmarks.generating.bodies import endpoint_of
from benchmarks.generating.kinds import KINDS, PICTURES
from swarm.distributed.protocol import ASK, PROGRESS, RECORDS, REPLY
from swarm.distributed.worker import Worker
from swarm.locust_patches.patches import tune_locust
from swarm.plan.cell import Cell, PlannedRun
from users import EmbeddingUser
from users.http2.sender import SCHEDULING
from users.inputs.images import POOL_BYTES, ImageSet, load_images
from users.result import Result
from users.transport.connections import PER_USER

RAW_RESULTS = 100_000
MIN_COSINE, TIMEOUT_S, PATIENCE_S, ANSWER_S = 0.999, 60.0, 30.0, 60.0
CLOSED = {"arrivals": "", "profile": "", "order_seed": ""}


class Master:
    """The master's side of the messages, on the worker's own runner."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._replies: dict[int, dict[str, Any]] = {}
        self._seq = 0
        runner.register_message(REPLY, self._on_reply)
        for kind in (RECORDS, PROGRESS):
            runner.register_message(kind, self._pack)

    def _pack(self, msg: Any, **_: Any) -> None:
        # As for a master elsewhere; a local runner alone would hand the message over as it is.
        Message(msg.type, msg.data, "worker").serialize()

    def _on_reply(self, msg: Any, **_: Any) -> None:
        self._replies[msg.data["seq"]] = msg.data

    def ask(self, op: str, **data: Any) -> dict[str, Any]:
        """The worker's reply. Raises RuntimeError where it refuses, gevent.Timeout where it is silent."""
        self._seq += 1
        self._runner.send_message(ASK, {"op": op, "seq": self._seq, "share": (0, 1), **data})
        with gevent.Timeout(ANSWER_S):
            while self._seq not in self._replies:
                gevent.sleep(0.01)
        reply = self._replies.pop(self._seq)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def phase(self, name: str) -> None:
        """Enter a closed-loop phase."""
        self.ask("phase", orders=[{"phase": name, **CLOSED}], start_utc_ns=time.time_ns())


def open_cell(master: Master, options: argparse.Namespace, images: ImageSet) -> None:
    """Hand the worker a study with golden embeddings, and its one cell."""
    kind = KINDS[options.kind]
    endpoint = endpoint_of(kind, f"127.0.0.1:{options.port}")
    master.ask(
        "study", images=str(options.bodies / PICTURES), texts="", pool_bytes=POOL_BYTES, kinds=[],
        sha256=images.sha256, golden={endpoint.space: rows(len(images)).tobytes()}, min_cosine=MIN_COSINE,
        timeout_s=TIMEOUT_S, scheduling=SCHEDULING, slo="", raw_results=RAW_RESULTS, trace=False,
    )  # fmt: skip
    cell = replace(Cell(endpoint, kind.batch, options.users, 0, 0), channels=PER_USER, client=options.client)
    about = {"endpoint": endpoint.to_dict(), "addresses": {}, "users": options.users}
    master.ask("cell", cells=[{**PlannedRun(cell, 1).to_record(), **about}])


def service_times(master: Master, seconds: float) -> list[float]:
    """Seconds that requests took, in a phase of its own: to listen for them is not free."""
    took: list[float] = []

    def listen(result: Result | None = None, **_: Any) -> None:
        if result is not None and result.error is None:
            took.append((result.end_ns - result.start_ns) / 1e9)

    events.request.add_listener(listen)
    master.phase("measure")
    gevent.sleep(seconds)
    master.ask("drain", patience_s=PATIENCE_S)
    events.request.remove_listener(listen)
    return took


def main() -> int:
    """Warm up, measure, drain, listen; tell."""
    parser = arm_options(__doc__)
    parser.add_argument("--client", default="prepared", help="prepared or library")
    options = parser.parse_args()
    tune_locust()
    environment = Environment(user_classes=[EmbeddingUser], events=events)
    runner = environment.create_local_runner()
    master, _ = Master(runner), Worker(environment, runner)
    open_cell(master, options, load_images(str(options.bodies / PICTURES)))
    runner.start(options.users, spawn_rate=1000)
    master.phase("warm-up")
    gevent.sleep(options.warm_up)
    stats = environment.stats
    master.ask("drain", patience_s=PATIENCE_S)
    took_s = service_times(master, options.listen)
    master.phase("measure")
    gevent.sleep(options.listen)
    before = stats.num_requests
    with measured() as span:
        gevent.sleep(options.seconds)
        after = stats.num_requests
    master.ask("drain", patience_s=PATIENCE_S)
    # A failure is one wherever it happens, the warm-up included.
    told(Told.of(span, after - before, took_s, stats.num_failures))
    return ended()


if __name__ == "__main__":
    sys.exit(main())
