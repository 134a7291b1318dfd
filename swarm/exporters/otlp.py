"""An OpenTelemetry collector, to which metrics and spans are pushed over OTLP/HTTP by OpenTelemetry's SDK.

Metrics are those of `Live`, which has them for Prometheus. Names and units follow OpenTelemetry's
conventions, so that a Prometheus behind the collector has them under the names of swarm/exporters/metrics.py.
A request's latency has no conventional name: `http.client.request.duration` begins when a request is sent,
and ours when it should have been.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import NativeHistogram

from reports.format import plural
from swarm.errors import UsageError
from swarm.events import RunEnded, SampleEvent, StudyEnded, StudyStarted
from swarm.exporters import metrics
from swarm.exporters.live import LatencyFamily, Live
from swarm.exporters.otlp_spans import NotTaken, OtlpSpans

PUSH_S = 5.0
"""Metrics are pushed so often, and when a run ends."""
TIMEOUT_S = 4.0
"""Of a push, its repetitions included: less than the end of a study waits for listeners."""
NAMESPACE = "inferswarm"
SCOPE = InstrumentationScope(NAMESPACE)
UNITS = {
    **{"_bytes_per_second": "By/s", "_seconds": "s", "_bytes": "By", "_ratio": "1"},
    **{"_watts": "W", "_joules": "J", "_hertz": "Hz"},
}
"""Of names that end so, by UCUM's symbols, the first that fits; the end is left out of the name."""
COUNTED_ELSEWHERE = (f"{NAMESPACE}_server_", f"{NAMESPACE}_gpu_")
"""How names begin of what others count: since when is not known."""
CUMULATIVE = sdk.AggregationTemporality.CUMULATIVE
logger = logging.getLogger("inferswarm")


class Session(requests.Session):
    """The SDK's exporters tell of a push only whether it failed; this keeps why."""

    fault = ""

    def request(self, *given: Any, **named: Any) -> requests.Response:
        """As always."""
        try:
            response = super().request(*given, **named)
        except Exception as error:  # files for TLS that are not there are no RequestException
            self.fault = plain(error)
            raise
        self.fault = "" if response.ok else f"HTTP status {response.status_code} {response.reason}"
        return response


def plain(error: Exception) -> str:
    """The system's words for what went wrong, without the objects around it."""
    cause = error
    while cause.__cause__ or cause.__context__ or (cause.args and isinstance(cause.args[0], Exception)):
        cause = cause.__cause__ or cause.__context__ or cause.args[0]  # type: ignore[assignment]
    return str(getattr(cause, "strerror", "") or cause or type(cause).__name__).lower()


class OtelCollector:
    """Where metrics and spans go; headers, TLS and compression are as `OTEL_EXPORTER_OTLP_…` say."""

    def __init__(self, url: str) -> None:
        # What fails is told as other listeners' losses are, and not once more for each try.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self.url = url
        # One for each: they are used at the same time, and may have other files for TLS.
        self._metrics_session, self._spans_session = Session(), Session()
        self._metrics = OTLPMetricExporter(
            f"{url}/v1/metrics", timeout=TIMEOUT_S, session=self._metrics_session
        )
        self._spans = OTLPSpanExporter(f"{url}/v1/traces", timeout=TIMEOUT_S, session=self._spans_session)

    def push_metrics(self, made: MetricsData) -> None:
        """Raises NotTaken."""
        if self._metrics.export(made) is not MetricExportResult.SUCCESS:
            raise self._not_taken("metrics", self._metrics_session)

    def push_spans(self, made: Sequence[ReadableSpan]) -> None:
        """Raises NotTaken."""
        if self._spans.export(made) is not SpanExportResult.SUCCESS:
            raise self._not_taken("spans", self._spans_session)

    def _not_taken(self, what: str, session: Session) -> NotTaken:
        return NotTaken(f"{self.url} does not take {what} ({session.fault or 'no answer'})")


def open_otlp(url: str, traced: bool) -> list[Any]:
    """Listeners that push metrics, and spans where requests carry a traceparent: what is taken there, since
    some tools take one of them alone. Raises UsageError where neither is.
    """
    collector = OtelCollector(url)
    made, faults = list[Any](), list[NotTaken]()
    try:
        collector.push_metrics(MetricsData([]))
        made.append(OtlpMetrics(collector.push_metrics))
    except NotTaken as error:
        faults.append(error)
    try:
        if traced:
            collector.push_spans([])
            made.append(OtlpSpans(collector.push_spans, resource_of))
    except NotTaken as error:
        faults.append(error)
    if not made:
        fix = "check the address of the collector, and its token in OTEL_EXPORTER_OTLP_HEADERS"
        raise UsageError(f"--otlp-url: {faults[0]}; {fix}")
    for fault in faults:
        logger.warning("--otlp-url: %s, so it gets none", fault)
    return made


def resource_of(study: StudyStarted) -> Resource:
    """What tells a study's metrics and spans from others'; OTEL_RESOURCE_ATTRIBUTES may add to it."""
    told = study.fingerprint
    own = {
        "service.name": NAMESPACE,
        "service.version": str(told.get("version") or told.get("git_commit") or "unknown"),
        "service.instance.id": f"{study.name}-{study.utc}",
        "inferswarm.study": study.name,
    }
    return OTELResourceDetector().detect().merge(Resource(own))


class OtlpMetrics(Live):
    """What `Live` knows, pushed every few seconds in the greenlet in which it listens."""

    flag = "--otlp-url"

    def __init__(
        self, push: Callable[[MetricsData], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        self._push, self._pushed, self._began_ns = push, clock(), time.time_ns()
        self._resource = Resource({})
        self._pushes = self._failed = 0
        self._fault = ""

    def on_study_started(self, study: StudyStarted, **_: Any) -> None:
        """Whose metrics come next: they are counted from here on, since the resource is the study's."""
        self._resource, self._began_ns = resource_of(study), time.time_ns()
        self._pushes, self._failed, self._fault = 0, 0, ""
        for counted in (self._series, self._heard, self._told):
            counted.clear()

    def on_sample(self, sample: SampleEvent, **_: Any) -> None:
        """Once a second."""
        super().on_sample(sample)
        if self._clock() - self._pushed >= PUSH_S:
            self._push_now()

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """All of its seconds were told."""
        super().on_run_ended(run)
        self._push_now()

    def on_study_ended(self, study: StudyEnded, **_: Any) -> None:
        """Counters stay as they are from here on."""
        self._push_now()

    def _push_now(self) -> None:
        self._pushes += 1
        try:
            self._push(metrics_data(self.collect(), self._resource, self._began_ns, time.time_ns()))
        except NotTaken as error:
            self._failed += 1
            self._fault = self._fault or str(error)
        self._pushed = self._clock()

    def missed(self) -> str:
        """How often this study's metrics were not taken, and why."""
        if not self._failed:
            return ""
        pushes = plural(self._pushes, "time")
        return f"--otlp-url: metrics not pushed {self._failed:,} of {pushes}: {self._fault}."


def metrics_data(families: Iterator[Metric], resource: Resource, began_ns: int, now_ns: int) -> MetricsData:
    """Families as the SDK has them, counted from `began_ns` until now (Unix time)."""
    made = [metric(family, began_ns, now_ns) for family in families]
    scoped = sdk.ScopeMetrics(SCOPE, made, "")
    return MetricsData([sdk.ResourceMetrics(resource, [scoped], "")])


def metric(family: Metric, began_ns: int, now_ns: int) -> sdk.Metric:
    """A family: its totals as a sum, its latencies as an exponential histogram, what holds now as a gauge."""
    name, unit = otlp_name(family.name)
    began_ns = 0 if family.name.startswith(COUNTED_ELSEWHERE) else began_ns
    data: Any
    if isinstance(family, LatencyFamily):
        points = [exponential(of, one, began_ns, now_ns) for of, one in family.native.items()]
        data = sdk.ExponentialHistogram(points, CUMULATIVE)
    else:
        numbers = [
            sdk.NumberDataPoint(dict(one.labels), began_ns, now_ns, one.value) for one in family.samples
        ]
        data = sdk.Sum(numbers, CUMULATIVE, True) if family.type == "counter" else sdk.Gauge(numbers)
    return sdk.Metric(name, family.documentation, unit, data)


def otlp_name(name: str) -> tuple[str, str]:
    """A metric's name and unit, of its name in Prometheus' practice.

    >>> otlp_name("inferswarm_latency_seconds"), otlp_name("inferswarm_requests")
    (('inferswarm.latency', 's'), ('inferswarm.requests', ''))
    """
    end = next((end for end in UNITS if name.endswith(end)), "")
    own = name.removeprefix(f"{NAMESPACE}_").removesuffix(end)
    return f"{NAMESPACE}.{own}", UNITS.get(end, "")


def exponential(
    key: Sequence[str], native: NativeHistogram, began_ns: int, now_ns: int
) -> sdk.ExponentialHistogramDataPoint:
    """A native histogram as OpenTelemetry's data model has it, whose bucket i - 1 is bucket i here."""
    labels: Mapping[str, str] = dict(zip(metrics.LATENCY.labels, key, strict=True))
    filled = dict(filled_buckets(native))
    first, last = min(filled, default=1), max(filled, default=0)
    counts = [filled.get(place, 0) for place in range(first, last + 1)]
    least = most = None  # not known
    return sdk.ExponentialHistogramDataPoint(
        labels,
        began_ns,
        now_ns,
        int(native.count_value),
        native.sum_value,
        native.schema,
        int(native.zero_count),
        sdk.Buckets(first - 1, counts),
        sdk.Buckets(0, []),
        0,
        least,  # type: ignore[arg-type]
        most,  # type: ignore[arg-type]
    )


def filled_buckets(native: NativeHistogram) -> Iterator[tuple[int, int]]:
    """The buckets of a native histogram's spans, each with its count."""
    counts, place = accumulate(native.pos_deltas or ()), 0
    for span in native.pos_spans or ():
        place += span.offset
        for _ in range(span.length):
            yield place, next(counts)
            place += 1
