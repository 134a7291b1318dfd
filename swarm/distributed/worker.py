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
from swarm.distributed.protocol import ASK, DRAINED, HELLO, PARTING, PARTING_S, REPLY, careful, is_question
from swarm.distributed.recorder import Recorder
from swarm.distributed.shipper import Shipper
from swarm.distributed.worker_cell import (
    assignment_of,
    check_files,
    check_reach,
    located,
    own_host,
    settle_memory,
    user_class_of,
)
from swarm.errors import StudyError, SwarmError
from swarm.redaction import redact_output
from users.endpoint import Endpoint
from users.inputs.images import ImageSet, ImageSetError, load_images
from users.load.assignment import DRAIN, Assignment
from users.load.pacing import ClosedPacer, OpenPacer, Pacer, offsets_ns
from users.load.user import InferenceUser
from users.redact import redacted
from users.result import Result
from users.transport.headers import Sender
from users.transport.sockets import resolved

OF_PACER = ("due", "dropped", "overslept")
NOTHING_DONE = {name: None if name in OF_PACER else 0 for name in DRAINED}
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
        self._assignment: Assignment | None = None
        self._entered_ns = 0
        self._marked = self._carried = 0
        """Requests of the warm-up that had finished at a mark, and those that a server may count after it."""
        self._ended: tuple[str, dict[str, Any]] | None = None
        """The phase whose requests are awaited, and its figures."""
        self._drained_seq = 0
        self._asked: Queue[dict[str, Any]] = Queue()
        for user_class in environment.user_classes:
            if issubclass(user_class, InferenceUser):
                user_class.assigned = True
        environment.events.request.add_listener(self._on_request)
        runner.register_message(ASK, careful(ASK, is_question, self._on_ask))
        runner.greenlet.spawn(self._serve)

    def hello(self) -> None:
        """Tell the master that this worker is here; it answers with what the others know already."""
        self._runner.send_message(HELLO, {"host": own_host()})

    def _on_request(self, result: Result | None = None, **_: Any) -> None:
        assignment = self._assignment
        if result and assignment and (result.cell, result.repeat) == (assignment.cell, assignment.repeat):
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
            redact_output()
        self._runner.send_message(REPLY, {"seq": data["seq"], **reply})

    def _do_study(self, data: dict[str, Any]) -> dict[str, Any]:
        """Load the pictures and the golden embeddings."""
        images = load_images(data["images"], data["texts"], data["pool_bytes"])
        if images.sha256 != data["sha256"]:
            raise StudyError(
                "its pictures or texts are not the master's; put the same files at the same path there"
            )
        self._settings, self._images = data, images
        self._recorder.raw_left = math.ceil(data["raw_results"] / max(1, data["share"][1]))
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
        self._assignment = self._shipper.assignment = None
        return {}

    def _do_cell(self, data: dict[str, Any]) -> dict[str, Any]:
        """Set the assignment for a cell: its users, spawned next, find everything prepared."""
        if self._images is None:
            raise StudyError("it was given a cell before a study")
        if of := data["share"][1]:  # none for who comes late
            check_files(math.ceil(data["users"] / of))
        user_class = user_class_of(self._environment.user_classes)
        assignment = assignment_of(data, self._settings, self._images)
        user_class.assignment = self._assignment = self._shipper.assignment = assignment
        self._recorder.begin_cell()
        self._marked, self._ended = 0, None
        settle_memory()
        return {}

    def _do_mark(self, data: dict[str, Any]) -> dict[str, Any]:
        """The server's counters are read next: it has counted the requests that finished until now."""
        assert self._assignment is not None
        self._marked = self._recorder.tally(self._assignment.phase).finished
        return {}

    def _do_phase(self, data: dict[str, Any]) -> dict[str, Any]:
        """Enter a phase in which users send; if they do so already, without a break."""
        assert self._assignment is not None
        self._shipper.mark()
        self._shipper.workers = data["share"][1]
        self._shipper.end_path()  # it may wait, while users send
        if data["seq"] < self._drained_seq:
            return {}  # while it waited, or stood behind a longer task, that phase came to its end
        self._carried, self._ended = self._assignment.sent - self._marked, None
        self._enter(data)
        self._shipper.begin_path(data["phase"])
        return {}

    def _enter(self, data: dict[str, Any]) -> None:
        assert self._assignment is not None
        self._entered_ns = start_ns(data["start_utc_ns"], wall_ns(), time.perf_counter_ns())
        self._assignment.enter(data["phase"], self._pacer(data))

    def _do_cool_down(self, data: dict[str, Any]) -> dict[str, Any]:
        """End the phase, and go on sending until its requests have come back under the same load."""
        assignment = self._assignment
        if assignment is None:
            return {}
        self._shipper.mark()
        self._shipper.end_path()
        if data["seq"] < self._drained_seq:
            return {}
        ended, _ = self._ended = assignment.phase, self._figures(assignment)
        self._enter(data)
        self._wait(lambda: assignment.under_way[ended], data["patience_s"])
        return {"succeeded": self._recorder.tally(ended).ok}

    def _figures(self, assignment: Assignment) -> dict[str, Any]:
        """What a drained worker reports of the phase under way, which ends."""
        phase_ns, pacer = time.perf_counter_ns() - self._entered_ns, assignment.pacer
        pacer.close()
        return {
            "sent": assignment.sent,
            "phase_ns": phase_ns,
            **{name: getattr(pacer, name) if pacer.paced else None for name in OF_PACER},
            **({"dropped_by_s": sorted(pacer.dropped_by_s.items())} if pacer.dropped else {}),
        }

    def _wait(self, left: Callable[[], int], patience_s: float) -> None:
        """Until none is left, or patience ends."""
        deadline = time.monotonic() + patience_s
        while left() and time.monotonic() < deadline:
            gevent.sleep(0.002)

    def _pacer(self, data: dict[str, Any]) -> Pacer:
        """What starts the users' requests: a phase with `arrivals` is open-loop."""
        if not data["arrivals"]:
            return ClosedPacer()
        offsets = offsets_ns(data["arrivals"], data["rate"], data["seed"], data["profile"])
        patience_ns = round(self._settings["timeout_s"] * 1e9)
        index, of = data["share"]
        return OpenPacer(offsets, self._entered_ns, index, of, patience_ns)

    def _do_share(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take another share of the arrivals: a worker was lost."""
        if self._assignment is not None and isinstance(self._assignment.pacer, OpenPacer):
            self._assignment.pacer.reshare(*data["share"])
        return {}

    def _do_drain(self, data: dict[str, Any]) -> dict[str, Any]:
        """Pause the users, wait for what is in flight, ship every window, then answer.

        What is still in flight after `patience_s` counts as abandoned, whatever its result.
        """
        self._drained_seq = max(self._drained_seq, data["seq"])
        assignment = self._assignment
        if assignment is None:
            return NOTHING_DONE
        self._shipper.mark()
        later = assignment.sent if self._ended else 0
        phase, figures = self._ended = self._ended or (assignment.phase, self._figures(assignment))
        assignment.enter(DRAIN)
        self._wait(lambda: assignment.in_flight, data["patience_s"])
        self._shipper.end_path()
        tally, left = self._recorder.tally(phase), assignment.under_way[phase]
        if assignment.in_flight:
            self._assignment = self._shipper.assignment = None
        self._shipper.flush()
        return {
            "users": len(tally.users_ns),
            "users_ns": tally.spans_ns(self._recorder.tally(DRAIN)),
            "finished": tally.finished,
            "abandoned": left + tally.abandoned,
            "other_phases": self._carried + later,
            **figures,
        }

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
