"""InferenceUser: the one path every request takes, whatever the backend."""

from locust import User, task

import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import gevent

from users.backends.registry import backends, codec_of
from users.codecs.base import PreparedRequest
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError, request_error, short
from users.inputs.images import load_images
from users.load.assignment import Assignment, prepare_pool
from users.load.check import SAMPLE_EVERY, check_embeddings, check_form
from users.load.think import parse
from users.load.trace_ids import HEADER, traceparent
from users.result import Result, row_of
from users.transport.base import Reply, Transport
from users.transport.connections import PER_USER
from users.transport.transports import client

PAUSE_AFTER_FAILURE_S = 0.05
"""Otherwise a closed loop on a dead server would spin: a refused connection takes microseconds."""

WAIT_FOR_ASSIGNMENT_S = 0.02
ABANDONED = RequestError(ErrorKind.OTHER, "abandoned at a stop")
"""How Locust's own statistics see a killed request; ours count it separately."""


class InferenceUser(User):
    """A Locust user who asks for embeddings, one request at a time, as its endpoint's backend is asked.

    In a study, `assignment` is set by the worker. In a plain locustfile, a subclass of one of those in
    users/__init__.py needs a `host`, or Locust's `--host`; any other sets an `endpoint` of its own:

        class Mine(TritonGrpcUser):
            host = "gpu-host:8001"
            model = "openclip_vit_b32"
            batch = 4
            wait_time = constant(1)
    """

    abstract = True
    assignment: ClassVar[Assignment | None] = None
    assigned: ClassVar[bool] = False
    """Whether a worker will set the assignment; users started before it wait."""
    asks: str = ""
    """The endpoint of a backend that is at `host`, by its name, such as `onnx-grpc`."""
    endpoint: Endpoint | None = None
    model: str = ""
    batch: int = 1
    timeout_s: float = 60.0
    channels: str = PER_USER
    """Of a plain locustfile; a study's assignment has its own."""

    def on_start(self) -> None:
        """Take a place in the assignment and open this user's connection, or its place among shared ones."""
        while self.assigned and type(self).assignment is None:
            gevent.sleep(WAIT_FOR_ASSIGNMENT_S)
        assignment = type(self).assignment
        if assignment is None:
            assignment = type(self).assignment = self._own_assignment()
        self.mine = assignment
        self.seat = next(self.mine.seats)
        self.mine.users += 1
        shift = self.seat % len(self.mine.pool)
        self.requests = itertools.cycle(self.mine.pool[shift:] + self.mine.pool[:shift])
        self.sampled_phase, self.answers = "", 0
        self.thinks: Iterator[int] | None = None
        self.client = self._client()
        self.client.open()
        self.connected = False

    def _client(self) -> Transport:
        """This user's way to the endpoint, not open yet."""
        mine = self.mine
        return client(mine.codec, mine.timeout_s, mine.channels, mine.by_library, mine.scheduling)

    def on_stop(self) -> None:
        """Close the connection, or leave the shared ones, in the greenlet that owns it."""
        if hasattr(self, "client"):
            self.mine.users -= 1
            self.client.close()

    @task
    def infer(self) -> None:
        """Send requests to the end of the study; in a plain locustfile one, before Locust's wait time."""
        self._take_turn()
        while self.assigned:
            gevent.sleep(0)  # an answer that is there at once is not waited for, and others want their turn
            self._take_turn()

    def _take_turn(self) -> None:
        """Send one request when the assignment's start event is open and the pacer gives the turn."""
        self.mine.start_event.wait()
        pacer = self.mine.pacer
        turn = pacer.wait_turn(self.seat)
        if turn is None:
            return
        think_ns = 0 if pacer.paced else self._think_ns()
        prepared, request_class = self._next_request(turn.number)
        trace_id = self.mine.trace_ids(turn.number) if self.mine.trace_ids else ""
        result = self.request(prepared, turn.intended_ns, request_class, think_ns, trace_id)
        if result.error is not None and not pacer.paced:
            gevent.sleep(PAUSE_AFTER_FAILURE_S)
        if think_ns:
            gevent.sleep(think_ns / 1e9)

    def _next_request(self, number: int) -> tuple[PreparedRequest, str]:
        """What is sent under a phase's number, and its class.

        Where requests are all alike each user goes round the pool from a place of its own: what it sends its
        neighbour has just sent, and it is still in the processor's cache.
        """
        return (next(self.requests), "") if self.mine.order is None else self.mine.request(number)

    def _think_ns(self) -> int:
        """How long this user waits after its next answer."""
        if not self.mine.think:
            return 0
        if self.thinks is None:
            self.thinks = parse(self.mine.think).times_ns(f"{self.mine.user_seed}/{self.seat}")
        return next(self.thinks)

    def request(
        self,
        prepared: PreparedRequest,
        intended_ns: int,
        request_class: str = "",
        think_ns: int = 0,
        trace_id: str = "",
    ) -> Result:
        """Send, stamp, check, report: one Result on every exit, an error, a timeout and a kill alike."""
        assignment, phase = self.mine, self.mine.phase
        reply: Reply | None = None
        error: RequestError | None = None
        killed = False
        encode_ns, request_id = 0, ""
        self._count_connection()
        assignment.sent += 1
        assignment.under_way[phase] += 1
        start_ns = time.perf_counter_ns()
        try:
            if assignment.by_library or prepared.id_at >= 0 or trace_id:
                request_id = assignment.new_id() if prepared.id_at >= 0 else ""
                prepared = self._encoded(prepared, request_id, trace_id)
                encode_ns = time.perf_counter_ns() - start_ns
            reply = self.client.send(prepared)
        except RequestError as caught:
            error = caught
        except BaseException:
            killed = True
            raise
        finally:
            end_ns = time.perf_counter_ns()
            result = Result(
                cell=assignment.cell,
                repeat=assignment.repeat,
                phase=phase,
                user=self.seat,
                images=len(prepared.indices),
                intended_ns=intended_ns,
                start_ns=start_ns,
                end_ns=end_ns,
                request_bytes=prepared.sent_bytes,
                response_bytes=reply.response_bytes if reply else 0,
                error=error or (self._check(reply, prepared, phase) if reply else None),
                abandoned=killed,
                phases_ns={"encode": encode_ns, **reply.phases_ns} if reply else {},
                server_ns=reply.server_ns if reply else {},
                request_id=request_id,
                request_class=request_class,
                think_ns=think_ns,
                trace_id=trace_id,
                from_cache=reply.from_cache if reply else None,
            )
            self._report(result)
            assignment.under_way[phase] -= 1
        return result

    def _count_connection(self) -> None:
        """Connections are made by users' first requests: under open-loop load, some may never get a turn."""
        if not self.connected:
            self.connected = True
            self.mine.count_connection()

    def _encoded(self, prepared: PreparedRequest, request_id: str, trace_id: str) -> PreparedRequest:
        """The same request under its own ids, rebuilt from its pictures by a library. Raises RequestError."""
        images = self.mine.images
        if images is not None:
            try:
                prepared = self.mine.codec.prepare(images, prepared.indices, request_id)
            except Exception as error:
                # Whatever it is, no server has said it.
                raise RequestError(ErrorKind.OTHER, short(error)) from error
        elif request_id:
            prepared = prepared.renamed(request_id)
        return prepared.with_header(HEADER, traceparent(trace_id)) if trace_id else prepared

    def _check(self, reply: Reply, prepared: PreparedRequest, phase: str) -> RequestError | None:
        """The fault of an answer, or None; a user's first answer of each phase is always among the sample."""
        if phase != self.sampled_phase:
            self.sampled_phase, self.answers = phase, 0
        self.answers += 1
        try:
            check_form(reply, len(prepared.indices), self.mine.endpoint.contract)
            if self.mine.golden is not None and self.answers % SAMPLE_EVERY == 1:
                check_embeddings(reply, prepared, self.mine.golden, self.mine.min_cosine)
        except RequestError as error:
            return error
        except Exception as error:  # a custom codec may return anything
            return request_error(error)
        return None

    def _report(self, result: Result) -> None:
        """Fire Locust's `request` event once; our Result rides along."""
        assignment = self.mine
        name = assignment.cell or f"{assignment.endpoint.name}/b{result.images}"
        self.environment.events.request.fire(
            request_type=assignment.endpoint.protocol,
            name=row_of(name, result.phase),
            response_time=result.service_ns / 1e6,
            response_length=result.response_bytes,
            response=None,
            context=self.context(),
            exception=ABANDONED if result.abandoned else result.error,
            result=result,
        )

    def _own_assignment(self) -> Assignment:
        """The assignment of a plain locustfile: this class's endpoint and batch, always measuring."""
        codec = codec_of(self.endpoint or self._at_host())
        pool = prepare_pool(codec, load_images(""), self.batch)
        assignment = Assignment(codec, pool, self.timeout_s, channels=self.channels)
        assignment.enter("measure")
        return assignment

    def _at_host(self) -> Endpoint:
        """What it asks, at Locust's host. Raises ValueError."""
        scheme, _, address = str(self.host or "").rstrip("/").rpartition("://")
        if not self.asks or not re.fullmatch(r"\S+:[0-9]+", address):
            raise ValueError(
                f"{type(self).__name__} needs a `host` with its port, e.g. gpu-host:8001, as a subclass of"
                " TritonGrpcUser, TritonHttpUser or JpegHttpUser, or its own `endpoint`"
            )
        known = {endpoint.name: endpoint for one in backends().values() for endpoint in one.endpoints}
        own = known[self.asks]
        tls = scheme in ("https", "grpcs")
        return replace(own, address=address, tls=tls, model=self.model or own.model)
