"""What a worker does when the master asks: load the pictures, take a cell, enter a phase, drain."""

from locust.env import Environment
from locust.runners import Runner

import math
import time
import traceback
from collections.abc import Callable
from typing import Any

import gevent
from gevent.queue import Queue

from swarm.clock import wall_ns
from swarm.distributed.part import CellPart
from swarm.distributed.protocol import ASK, HELLO, PARTING, PARTING_S, REPLY, careful, is_question
from swarm.distributed.recorder import TRACED_PER_S, Recorder
from swarm.distributed.shipper import Shipper
from swarm.distributed.worker_cell import (
    assignment_of,
    check_files,
    check_reach,
    located,
    own_host,
    settle_memory,
    user_classes_of,
)
from swarm.errors import StudyError, SwarmError
from swarm.redaction import guard_output
from users.endpoint import Endpoint
from users.inputs.images import ImageSet, load_images
from users.inputs.pictures import ImageSetError
from users.load.assignment import Assignment
from users.redact import redacted
from users.result import Result
from users.transport.headers import Sender
from users.transport.sockets import resolved

TAKES_TIME = frozenset({"cool_down", "drain"})
"""Orders that wait for requests: a second, less patient one must not wait for the first."""
SOON_NS = 1_000_000_000
"""A start further away than this was not agreed on: the clocks of the hosts differ."""


class Worker:
    """The worker's side of a study; in a single process it runs beside the master's side."""

    def __init__(self, environment: Environment, runner: Runner) -> None:
        self._environment = environment
        self._runner = runner
        self._recorder = Recorder()
        self._shipper = Shipper(runner, self._recorder)
        self._images: ImageSet | None = None
        self._settings: dict[str, Any] = {}
        self._parts: list[CellPart] = []
        self._tags: set[tuple[str, int]] = set()
        """Cell and repeat of each."""
        self._drained_seq = 0
        self._asked: Queue[dict[str, Any]] = Queue()
        self._user_classes = user_classes_of(environment)
        for user_class in self._user_classes:
            user_class.assigned = True
        environment.events.request.add_listener(self._on_request)
        runner.register_message(ASK, careful(ASK, is_question, self._on_ask))
        runner.greenlet.spawn(self._serve)

    def hello(self) -> None:
        """Tell the master that this worker is here; it answers with what the others know already."""
        self._runner.send_message(HELLO, {"host": own_host()})

    def _on_request(self, result: Result | None = None, **_: Any) -> None:
        if result and (result.cell, result.repeat) in self._tags:
            self._recorder.add(result)

    def _on_ask(self, msg: Any, **_: Any) -> None:
        # Never here: Locust's message loop must not wait for us. One after the other, in the order asked.
        if msg.data["op"] in TAKES_TIME:
            gevent.spawn(self._answer, dict(msg.data))
        else:
            self._asked.put(dict(msg.data))

    def _serve(self) -> None:
        while True:
            self._answer(self._asked.get())

    def _answer(self, data: dict[str, Any]) -> None:
        try:
            reply = getattr(self, f"_do_{data['op']}")(data)
        except (SwarmError, ImageSetError) as error:
            reply = {"error": redacted(str(error))}
        except Exception as error:
            traceback.print_exc()
            reply = {"error": redacted(f"{type(error).__name__}: {error}")}
        if Sender.is_worker:  # headers may have named further secrets
            guard_output()
        self._runner.send_message(REPLY, {"seq": data["seq"], **reply})

    def _do_study(self, data: dict[str, Any]) -> dict[str, Any]:
        """Load the pictures and the golden embeddings."""
        images = load_images(data["images"], data["texts"], data["pool_bytes"], data["kinds"])
        if images.sha256 != data["sha256"]:
            raise StudyError(
                "its pictures or texts are not the master's; put the same files at the same path there"
            )
        self._settings, self._images = data, images
        self._recorder.begin_study(data["slo"])
        of = max(1, data["share"][1])
        self._recorder.raw_left = math.ceil(data["raw_results"] / of)
        self._recorder.traced_per_s = math.ceil(TRACED_PER_S / of)
        return {}

    def _do_reach(self, data: dict[str, Any]) -> dict[str, Any]:
        """Connect once to every endpoint, by each of the ways that the study's cells take."""
        for addresses in data["ways"]:
            for endpoint in data["endpoints"]:
                check_reach(located(endpoint, addresses))
        own = [Endpoint.from_dict(endpoint) for endpoint in data["endpoints"]]
        return {"resolved": {endpoint.name: resolved(endpoint) for endpoint in own}}

    def _do_rest(self, data: dict[str, Any]) -> dict[str, Any]:
        """Have no part in the next cells: what this process does meanwhile belongs to none."""
        self._take([])
        return {}

    def _do_cell(self, data: dict[str, Any]) -> dict[str, Any]:
        """Set the assignments of a run's cells: their users, spawned next, find everything prepared."""
        if self._images is None:
            raise StudyError("it was given a cell before a study")
        cells = data["cells"]
        if of := data["share"][1]:  # none for who comes late
            check_files(math.ceil(sum(cell["users"] for cell in cells) / of))
        made = [assignment_of(cell, self._settings, self._images) for cell in cells]
        for user_class, assignment in zip(self._user_classes, made, strict=False):
            user_class.assignment = assignment
        self._take(made)
        self._recorder.begin_cell()
        settle_memory()
        return {}

    def _take(self, assignments: list[Assignment]) -> None:
        """These are the cells of the run from here on."""
        self._parts = [CellPart(one, self._recorder) for one in assignments]
        self._tags = {(one.cell, one.repeat) for one in assignments}
        self._shipper.assignments = assignments

    def _do_mark(self, data: dict[str, Any]) -> dict[str, Any]:
        """The server's counters are read next."""
        for part in self._parts:
            part.mark()
        return {}

    def _do_phase(self, data: dict[str, Any]) -> dict[str, Any]:
        """Enter a phase in which users send; if they do so already, without a break."""
        self._shipper.mark()
        self._shipper.workers = data["share"][1]
        self._shipper.end_path()  # it may wait, while users send
        if data["seq"] < self._drained_seq:
            return {}  # while it waited, or stood behind a longer task, that phase came to its end
        began_ns = start_ns(data["start_utc_ns"], wall_ns(), time.perf_counter_ns())
        for part, orders in zip(self._parts, data["orders"], strict=True):
            part.begin(orders, began_ns, data["share"])
        self._shipper.begin_path(data["orders"][0]["phase"])
        return {}

    def _do_cool_down(self, data: dict[str, Any]) -> dict[str, Any]:
        """End the phase, and go on sending until its requests have come back under the same load."""
        parts = self._parts
        if not parts:
            return {}
        self._shipper.mark()
        self._shipper.end_path()
        if data["seq"] < self._drained_seq:
            return {}
        began_ns = start_ns(data["start_utc_ns"], wall_ns(), time.perf_counter_ns())
        for part, orders in zip(parts, data["orders"], strict=True):
            part.cool_down(orders, began_ns, data["share"])
        self._wait(lambda: sum(part.left for part in parts), data["patience_s"])
        return {"succeeded": [part.succeeded for part in parts]}

    def _wait(self, left: Callable[[], int], patience_s: float) -> None:
        """Until none is left, or patience ends."""
        deadline = time.monotonic() + patience_s
        while left() and time.monotonic() < deadline:
            gevent.sleep(0.002)

    def _do_share(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take another share of the requests: a worker was lost."""
        for part in self._parts:
            part.assignment.pacer.reshare(*data["share"])
        return {}

    def _do_drain(self, data: dict[str, Any]) -> dict[str, Any]:
        """Pause the users, wait for what is in flight, ship every window, then answer.

        What is still in flight after `patience_s` counts as abandoned, whatever its result.
        """
        self._drained_seq = max(self._drained_seq, data["seq"])
        parts = self._parts
        if parts:
            self._shipper.mark()
        for part in parts:
            part.stop()
        self._wait(lambda: sum(part.assignment.in_flight for part in parts), data["patience_s"])
        if parts:
            self._shipper.end_path()
        told = [part.drained() for part in parts]
        if any(part.assignment.in_flight for part in parts):
            self._take([])
        self._shipper.flush()
        return {"parts": told}

    def part(self) -> None:
        """On a signal to this worker: finish what is in flight, within seconds, ship it, and say so."""
        reply = self._do_drain({"patience_s": PARTING_S, "seq": 0})
        self._runner.send_message(PARTING, reply)

    def flush(self) -> None:
        """Ship everything recorded so far."""
        self._shipper.flush()


def start_ns(utc_ns: int, wall_ns: int, now_ns: int) -> int:
    """When a phase that all workers begin at `utc_ns` begins here, in `perf_counter_ns`.

    An order that comes late makes its first arrivals late; now, where the hosts' clocks plainly differ.
    """
    ahead_ns = utc_ns - wall_ns
    return now_ns + ahead_ns if abs(ahead_ns) <= SOON_NS else now_ns
