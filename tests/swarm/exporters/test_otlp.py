"""Metrics and spans in an OpenTelemetry collector: by the SDK's exporters, read by its messages."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from swarm.errors import UsageError
from swarm.events import StudyEnded
from swarm.exporters import otlp
from swarm.exporters.live import Live
from swarm.exporters.otlp import NotTaken, OtelCollector, OtlpMetrics, open_otlp, resource_of
from swarm.exporters.otlp_spans import AT_ONCE, OtlpSpans
from swarm.targets.embedded import arguments
from swarm.targets.endpoints import FIVE, chosen
from tests.processes import free_port
from tests.swarm.exporters.otlp_receiver import Receiver, receiving, values_of
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import Followed, Heard
from tests.swarm.options.test_parse import options
from tests.swarm.output.test_dispatch import BOOK, TAG, a_run

TRACE = "0af7651916cd43dd8448eb211c80319c"
US = 1_000
WHY = "HTTP status 400 Bad Request"
HEADER = {
    **BOOK.header,
    "study": "step7",
    "fingerprint": {"version": "1.2.3"},
    "endpoints": {
        "onnx-grpc": {"url": "grpcs://gpu:8011", "path": "/inference.GRPCInferenceService/ModelInfer"}
    },
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def row(**changed: Any) -> dict[str, Any]:
    """One request in columns, as a worker tells it: 2 ms, 300 µs late."""
    phases = {"encode": 0, "send": 200 * US, "wait": 1_500 * US, "receive": 50 * US, "decode": 250 * US}
    told = {f"{phase}_ns": phases.get(phase) for phase in (*phases, "connect", "stream_wait", "flow_wait")}
    own = {"user": 3, "images": 4, "intended_utc_ns": 1_000_000 * US, "send_delay_ns": 300 * US}
    own |= {"service_ns": 2_000 * US, "server_ns": None, "request_bytes": 602, "response_bytes": 20}
    texts = {"error": "", "abandoned": False, "request_id": "", "request_class": "", "trace_id": TRACE}
    return {**told, **own, **texts, **changed}


def traced(*rows: dict[str, Any], phase: str = "measure") -> dict[str, Any]:
    """A worker's message of some requests."""
    return {**TAG, "phase": phase, "columns": {name: [one[name] for one in rows] for name in rows[0]}}


def told_spans(receiver: Receiver, *rows: dict[str, Any]) -> list[Span]:
    """What becomes of requests in a study."""
    study = Followed(HEADER, OtlpSpans(OtelCollector(receiver.url).push_spans, resource_of))
    start, *body, end = a_run(1)
    study.tell(start)
    study.dispatcher.on_traced("w7", [traced(*rows)], 0)
    study.tell(*body, end)
    assert study.dispatcher.finish() == []
    return [span for _, span in receiver.spans]


def test_metrics_are_those_of_the_study_s_seconds(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=of-nobodys-business")
    study = Followed(HEADER, OtlpMetrics(OtelCollector(receiver.url).push_metrics, FakeClock()))
    study.tell(*a_run(3))
    assert study.dispatcher.finish() == []
    found, name = receiver.metrics, {"endpoint": "onnx-grpc", "cell": TAG["cell"], "phase": "measure"}
    counts = {
        values_of(point)["outcome"]: point.as_int or point.as_double
        for point in found["inferswarm.requests"].sum.data_points
        if values_of(point)["phase"] == "measure"
    }
    assert counts == {"ok": 60, "failed": 6}
    assert (found["inferswarm.requests"].sum.is_monotonic, found["inferswarm.requests"].unit) == (True, "")
    (latency,) = found["inferswarm.latency"].exponential_histogram.data_points
    assert (values_of(latency), found["inferswarm.latency"].unit) == (name, "s")
    assert (latency.count, latency.zero_count, latency.scale) == (60, 0, 4)
    assert latency.sum == pytest.approx(60 * 0.040, rel=1e-3)
    (place,) = [at for at, count in enumerate(latency.positive.bucket_counts) if count]
    base = 2 ** (2**-latency.scale)
    low, high = (base ** (latency.positive.offset + place + more) for more in (0, 1))
    assert low < 0.040 <= high <= 1.045 * low
    (power, *_) = found["inferswarm.gpu_power"].gauge.data_points
    assert (values_of(power)["gpu"], power.as_double, found["inferswarm.gpu_power"].unit) == ("a", 100.0, "W")
    (resource,) = {str(one.resource_metrics[0].resource) for one in receiver.came}
    assert all(word in resource for word in ("inferswarm", "1.2.3", "step7-2026-11-21T11:00:00"))
    assert {one["x-token"] for one in receiver.headers} == {"of-nobodys-business"}


def test_metrics_go_every_few_seconds_and_when_a_run_and_a_study_end(
    receiver: Receiver, tmp_path: Path
) -> None:
    clock = FakeClock()
    made = OtlpMetrics(OtelCollector(receiver.url).push_metrics, clock)
    start, *body, end = a_run(14)
    heard = Heard()
    Followed(HEADER, heard).tell(start, *body, end)
    study = Followed(HEADER, made)
    pushed_at = list[int]()
    for second, sample in enumerate(heard.of("sample")):
        clock.now += 1
        made.on_sample(sample)
        pushed_at += [second] * (len(receiver.came) - len(pushed_at))
    assert pushed_at == [4, 9]
    study.tell(start, *body, end)
    assert len(receiver.came) == 3
    study.dispatcher.finish()
    study.dispatcher.ended(StudyEnded("step7", tmp_path, "complete", "", 0))
    assert len(receiver.came) == 4


def test_the_totals_of_a_second_study_are_its_own(receiver: Receiver) -> None:
    made = OtlpMetrics(OtelCollector(receiver.url).push_metrics, FakeClock())
    for _ in range(2):
        study = Followed(HEADER, made)
        study.tell(*a_run(3))
        assert study.dispatcher.finish() == []
        points = receiver.metrics["inferswarm.requests"].sum.data_points
        assert (
            sum(point.as_int or point.as_double for point in points if values_of(point)["outcome"] == "ok")
            == 60
        )
    (first, *_) = [one.resource_metrics[0].scope_metrics[0].metrics[0] for one in receiver.came]
    assert points[0].start_time_unix_nano > first.sum.data_points[0].time_unix_nano


def test_a_request_is_a_client_span_over_its_phases(receiver: Receiver) -> None:
    whole, *parts = told_spans(receiver, row())
    assert (whole.trace_id.hex(), whole.span_id.hex(), whole.parent_span_id) == (TRACE, TRACE[16:], b"")
    assert (whole.kind, whole.status.code) == (Span.SPAN_KIND_CLIENT, Status.STATUS_CODE_UNSET)
    assert whole.name == "inference.GRPCInferenceService/ModelInfer"
    began_ns = 1_000_300 * US
    assert (whole.start_time_unix_nano, whole.end_time_unix_nano) == (began_ns, began_ns + 2_000 * US)
    assert [(part.name, part.start_time_unix_nano - began_ns, part.end_time_unix_nano - began_ns)
            for part in parts] == [
        ("send", 0, 200 * US), ("wait", 200 * US, 1_700 * US),
        ("receive", 1_700 * US, 1_750 * US), ("decode", 1_750 * US, 2_000 * US),
    ]  # fmt: skip
    assert {(part.trace_id, part.parent_span_id) for part in parts} == {(whole.trace_id, whole.span_id)}
    assert len({part.span_id for part in (whole, *parts)}) == 5
    assert values_of(whole) == {
        "server.address": "gpu", "server.port": 8011, "rpc.system.name": "grpc",
        "rpc.method": "inference.GRPCInferenceService/ModelInfer",
        "inferswarm.endpoint": "onnx-grpc", "inferswarm.payload": "fp32", "inferswarm.cell": TAG["cell"],
        "inferswarm.repeat": 1, "inferswarm.phase": "measure", "inferswarm.worker": "w7",
        "inferswarm.user": 3,
        "inferswarm.batch": 4, "inferswarm.intended_utc_ns": 1_000_000 * US,
        "inferswarm.send_delay_ns": 300 * US,
        "inferswarm.request_bytes": 602, "inferswarm.response_bytes": 20,
    }  # fmt: skip


def test_failed_and_abandoned_requests_are_errors(receiver: Receiver) -> None:
    nothing = dict.fromkeys([name for name in row() if name.endswith("e_ns") or name == "wait_ns"])
    nothing |= {"send_ns": None, "service_ns": 5 * US}
    late = row(**nothing, error="timeout", trace_id="1" * 32)
    found = told_spans(receiver, late, row(**nothing, abandoned=True, trace_id="2" * 32))
    assert [(one.status.code, one.status.message, values_of(one)["error.type"]) for one in found] == [
        (Status.STATUS_CODE_ERROR, kind, kind) for kind in ("timeout", "abandoned")
    ]


def test_over_http_a_span_has_the_names_of_http(receiver: Receiver) -> None:
    header = {**HEADER, "endpoints": {"onnx-grpc": {"url": "[::1]:8010", "path": "/v2/models/x/infer"}}}
    planned = [{**entry, "protocol": "http"} for entry in header["plan"]]
    study = Followed(
        {**header, "plan": planned}, OtlpSpans(OtelCollector(receiver.url).push_spans, resource_of)
    )
    start, *body, end = a_run(1)
    study.tell(start)
    study.dispatcher.on_traced("w7", [traced(row())], 0)
    study.tell(*body, end)
    _, whole = receiver.spans[0]
    told = values_of(whole)
    assert (whole.name, told["http.request.method"]) == ("POST /v2/models/x/infer", "POST")
    assert told["url.full"] == "http://[::1]:8010/v2/models/x/infer"
    assert (told["server.address"], told["server.port"]) == ("::1", 8010)


def test_many_requests_go_a_few_at_a_time(receiver: Receiver) -> None:
    rows = [row(trace_id=f"{number:032x}") for number in range(1, 2 * AT_ONCE + 2)]
    assert len(told_spans(receiver, *rows)) == 5 * len(rows)
    sizes = [len(one.resource_spans[0].scope_spans[0].spans) for one in receiver.came]
    assert sizes == [5 * AT_ONCE, 5 * AT_ONCE, 5]


def test_a_collector_that_goes_is_told_once_and_counted(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 0.5)
    collector = OtelCollector(receiver.url)
    study = Followed(
        HEADER, OtlpSpans(collector.push_spans, resource_of), OtlpMetrics(collector.push_metrics)
    )
    start, *body, end = a_run(1)
    study.tell(start)
    receiver.status = 400
    for _ in range(2):
        study.dispatcher.on_traced("w7", [traced(*[row()] * AT_ONCE)], 0)
    study.tell(*body, end)
    assert sorted(study.dispatcher.finish()) == [
        f"--otlp-url: metrics not pushed 1 of 1 time: {receiver.url} does not take metrics ({WHY}).",
        f"--otlp-url: spans of 50 of 50 requests not pushed: {receiver.url} does not take spans ({WHY}).",
    ]
    assert len(study.said) == 2


def test_nobody_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 0.5)
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UsageError) as caught:
        open_otlp(url, traced=True)
    assert str(caught.value) == (
        f"--otlp-url: {url} does not take metrics (connection refused); check the address of the collector,"
        " and its token in OTEL_EXPORTER_OTLP_HEADERS"
    )


@pytest.mark.parametrize(
    ("path", "what", "kinds"),
    [("/v1/metrics", "spans", [OtlpMetrics]), ("/v1/traces", "metrics", [OtlpSpans])],
)
def test_a_tool_that_takes_one_alone_gets_that(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, path: str, what: str, kinds: list[type]
) -> None:
    assert [type(one) for one in open_otlp(receiver.url, traced=False)] == [OtlpMetrics]
    assert [type(one) for one in open_otlp(receiver.url, traced=True)] == [OtlpMetrics, OtlpSpans]
    assert caplog.messages == []
    receiver.paths = {path}
    assert [type(one) for one in open_otlp(receiver.url, traced=True)] == kinds
    assert caplog.messages == [
        f"--otlp-url: {receiver.url} does not take {what} (HTTP status 404 Not Found), so it gets none"
    ]


def test_waiting_for_a_collector_leaves_others_their_turn(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 1.5)
    collector = OtelCollector(receiver.url)
    receiver.status = 503
    pushing = gevent.spawn(collector.push_spans, [])
    turns = 0
    while not pushing.ready() and turns < 5:
        gevent.sleep(0.01)
        turns += 1
    pushing.join()
    assert isinstance(pushing.exception, NotTaken)
    assert (str(pushing.exception), turns) == (
        f"{receiver.url} does not take spans (HTTP status 503 Service Unavailable)", 5
    )  # fmt: skip


@pytest.mark.parametrize(
    ("listener", "said"),
    [
        (
            OtlpSpans(lambda made: None, resource_of),
            ["6 requests with a traceparent, those beyond 500 a second, were not told of."],
        ),
        (Live(), []),
    ],
)
def test_requests_that_workers_only_counted_are_told_of_where_anybody_hears_of_them(
    listener: object, said: list[str]
) -> None:
    study = Followed(HEADER, listener)
    start, *body, end = a_run(1)
    study.tell(start, *body)
    for _ in range(2):
        study.dispatcher.on_traced("w7", [], 3)
    study.tell(end)
    assert study.dispatcher.finish() == said


@pytest.mark.parametrize(
    "value",
    [
        "collector:4318",
        "ftp://c:1",
        "http://",
        "http://c:4318/v1/traces",
    ],
)
def test_a_url_that_is_none_of_a_collector(value: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--otlp-url {value}: give a URL such as http://coll")):
        options("--otlp-url", value)


def test_prometheus_takes_otlp_below_a_path_of_its_own() -> None:
    assert options("--otlp-url", "http://p:9090/api/v1/otlp/").otlp_url == "http://p:9090/api/v1/otlp"


@pytest.mark.parametrize("value", ["http://u:p@c:4318", "http://c:1/?token=p"])
def test_a_secret_in_a_url_is_refused_and_not_quoted(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        options("--otlp-url", value)
    assert (
        str(caught.value)
        == "--otlp-url: may hold no user and no query; give OTEL_EXPORTER_OTLP_HEADERS the token"
    )


def test_servers_started_here_send_their_spans_there_where_requests_can_carry_a_traceparent() -> None:
    def told(*words: str) -> list[str]:
        asked = options("--emulate", "a100", "--otlp-url", "http://c:4318/", *words)
        return arguments(asked, chosen(FIVE, asked))

    assert " --spans-url http://c:4318/v1/traces " in f"{' '.join(told('--traceparent', '0.5'))} "
    assert "--spans-url" not in {*told(), *told("--traceparent", "0.5", "--trace")}
