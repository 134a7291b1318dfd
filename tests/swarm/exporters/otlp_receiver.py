"""An OTLP/HTTP receiver that keeps what it is sent, in the messages of the OpenTelemetry project itself."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

IDS = ("traceId", "spanId", "parentSpanId")
FORMS = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}


class Receiver:
    """What came, in order; `status` is what it answers from now on, and 404 for others than its `paths`."""

    def __init__(self) -> None:
        self.came: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.paths = set(FORMS)
        self.url = ""

    @property
    def metrics(self) -> dict[str, Metric]:
        """The latest of each name."""
        whole = [one for one in self.came if isinstance(one, ExportMetricsServiceRequest)]
        parts = [scope for one in whole for found in one.resource_metrics for scope in found.scope_metrics]
        return {metric.name: metric for scope in parts for metric in scope.metrics}

    @property
    def spans(self) -> list[tuple[str, Span]]:
        """Each with the name of its service."""
        whole = [one for one in self.came if isinstance(one, ExportTraceServiceRequest)]
        parts = [found for one in whole for found in one.resource_spans]
        return [
            (str(values_of(part.resource)["service.name"]), span)
            for part in parts
            for scope in part.scope_spans
            for span in scope.spans
        ]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """One request; opentelemetry-cpp writes JSON unless it is told otherwise."""
        self.headers.append(headers)
        if headers["content-type"] == "application/json":
            told = with_ids(json.loads(body))
            self.came.append(json_format.ParseDict(told, FORMS[path](), ignore_unknown_fields=True))
        else:
            self.came.append(FORMS[path].FromString(body))


def with_ids(told: Any) -> Any:
    """OTLP's JSON has ids in hexadecimal, protobuf's own in base64."""
    if isinstance(told, list):
        return [with_ids(one) for one in told]
    if not isinstance(told, dict):
        return told
    ids = {name: base64.b64encode(bytes.fromhex(told[name])).decode() for name in IDS if name in told}
    return {name: ids.get(name) or with_ids(value) for name, value in told.items()}


def values_of(part: Any) -> dict[str, Any]:
    """Attributes of a resource, a span, or a point."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in part.attributes}


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """One at a free port of loopback, for the block."""
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = made.status if self.path in made.paths else 404
            if status == 200:
                made.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        made.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        server.shutdown()
