"""A span for each request that carried a traceparent, made on the master of what workers tell of it.

The request's span is the parent of what the server adds to its trace. Below it are the client's phases, one
behind the other, also where one was in the middle of another, as `flow_wait` may be in `send`.
Names and attributes are those of OpenTelemetry's semantic conventions for HTTP and RPC clients, and others'
begin with `inferswarm.`.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import gevent
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from reports.format import plural
from swarm.events import RunEnded, RunStarted, StudyEnded, StudyStarted, TracedEvent

PUSH_S = 1.0
"""The first request of a push waits so long for others."""
AT_ONCE = 25
"""Requests in a push: encoding their spans keeps the process busy for a few milliseconds."""
PHASES = ("encode", "connect", "stream_wait", "flow_wait", "send", "wait", "receive", "decode")
"""In the order in which they follow each other."""
SCOPE = InstrumentationScope("inferswarm")
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
ABANDONED = "abandoned"
Row = Mapping[str, Any]
"""What results.parquet has of a request, and in which `phase` of which run it began."""


class NotTaken(Exception):
    """Says what a collector has not taken, and why."""


class OtlpSpans:
    """Hears of requests with a traceparent, and pushes their spans in its own greenlet, a few at a time."""

    flag = "--otlp-url"

    def __init__(
        self,
        push: Callable[[Sequence[ReadableSpan]], None],
        resource_of: Callable[[StudyStarted], Resource],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._push, self._resource_of, self._clock = push, resource_of, clock
        self._resource = Resource({})
        self._endpoints: Mapping[str, Mapping[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        """By cell, what all its spans say of the call."""
        self._waiting: list[Row] = []
        self._since = 0.0
        self._given = self._lost = 0
        self._fault = ""

    def on_study_started(self, study: StudyStarted, **_: Any) -> None:
        """Whose spans come next, and whom requests are sent to."""
        self._resource, self._endpoints, self._calls = self._resource_of(study), study.endpoints, {}
        self._given, self._lost, self._fault = 0, 0, ""

    def on_run_started(self, run: RunStarted, **_: Any) -> None:
        """Whom its requests are sent to."""
        planned = run.planned
        self._calls[run.cell] = call_of(planned, self._endpoints.get(planned["endpoint"], {}))

    def on_traced(self, traced: TracedEvent, **_: Any) -> None:
        """Requests that have ended."""
        about = {"cell": traced.cell, "repeat": traced.repeat, "phase": traced.phase, "worker": traced.worker}
        names, columns = traced.columns.keys(), traced.columns.values()
        self._since = self._since if self._waiting else self._clock()
        self._waiting += [about | dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if len(self._waiting) >= AT_ONCE or self._clock() - self._since >= PUSH_S:
            self._push_all()

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """All its requests have ended."""
        self._push_all()

    def on_study_ended(self, study: StudyEnded, **_: Any) -> None:
        """Nothing more comes."""
        self._push_all()

    def _push_all(self) -> None:
        """Those that wait; all that are left are lost where a push fails: what comes next may be taken."""
        rows, self._waiting = self._waiting, []
        self._given += len(rows)
        for first in range(0, len(rows), AT_ONCE):
            some = rows[first : first + AT_ONCE]
            try:
                self._push([one for row in some for one in self._spans(row)])
            except NotTaken as error:
                self._lost += len(rows) - first
                self._fault = self._fault or str(error)
                return
            gevent.sleep(0)

    def missed(self) -> str:
        """Of how many requests of this study the spans were not taken, and why."""
        if not self._lost:
            return ""
        requests = plural(self._given, "request")
        return f"--otlp-url: spans of {self._lost:,} of {requests} not pushed: {self._fault}."

    def _spans(self, row: Row) -> Iterator[ReadableSpan]:
        return spans_of(row, self._calls.get(row["cell"], {}), self._resource)


def call_of(planned: Mapping[str, Any], endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """What all calls of a cell have in common, by OpenTelemetry's names; `name` is that of their spans."""
    url, path = str(endpoint.get("url", "")), str(endpoint.get("path", ""))
    parts = urlsplit(url if "://" in url else f"//{url}")
    own = {"endpoint": planned["endpoint"], "payload": planned["payload"]}
    told = {"server.address": parts.hostname or "", **{f"inferswarm.{name}": of for name, of in own.items()}}
    told |= {"server.port": parts.port} if parts.port else {}
    if planned["protocol"] == "grpc":
        method = path.lstrip("/")
        return {"name": method or "grpc", "rpc.system.name": "grpc", "rpc.method": method, **told}
    full = f"{parts.scheme or 'http'}://{parts.netloc}{path}"
    request = {"http.request.method": "POST", "url.full": full, "url.template": path}
    return {"name": f"POST {path}".rstrip(), **request, **told}


def spans_of(row: Row, call: Mapping[str, Any], resource: Resource) -> Iterator[ReadableSpan]:
    """The span of a request, and those of its phases."""
    trace_id = row["trace_id"]
    context = context_of(int(trace_id, 16), int(trace_id[16:], 16))
    start_ns = row["intended_utc_ns"] + row["send_delay_ns"]
    common: dict[str, Any] = {"resource": resource, "instrumentation_scope": SCOPE}
    fault = ABANDONED if row["abandoned"] else row["error"]
    yield ReadableSpan(
        str(call.get("name", "request")),
        context,
        attributes=attributes_of(row, call, fault),
        kind=SpanKind.CLIENT,
        status=Status(StatusCode.ERROR, fault) if fault else Status(StatusCode.UNSET),
        start_time=start_ns,
        end_time=start_ns + row["service_ns"],
        **common,
    )
    for number, phase in enumerate(PHASES, 1):
        if took_ns := row[f"{phase}_ns"]:
            # Ids need only differ within the trace.
            own = context_of(context.trace_id, context.span_id ^ number)
            times = {"start_time": start_ns, "end_time": start_ns + took_ns}
            yield ReadableSpan(phase, own, context, attributes={}, **times, **common)
            start_ns += took_ns


def context_of(trace_id: int, span_id: int) -> SpanContext:
    """One that is kept."""
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=SAMPLED)


def attributes_of(row: Row, call: Mapping[str, Any], fault: str) -> dict[str, Any]:
    """What the span says of its request."""
    names = ("cell", "repeat", "phase", "worker", "user", "request_bytes", "response_bytes")
    later = ("server_ns", "request_id", "request_class")
    own = {name: row[name] for name in (*names, *later) if row[name] not in (None, "")}
    own |= {"batch": row["images"], "send_delay_ns": row["send_delay_ns"]}
    own["intended_utc_ns"] = row["intended_utc_ns"]
    told = {f"inferswarm.{name}": value for name, value in own.items()}
    shared = {name: value for name, value in call.items() if name != "name"}
    return {**shared, **told, **({"error.type": fault} if fault else {})}
