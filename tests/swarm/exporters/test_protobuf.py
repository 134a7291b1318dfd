"""Native histograms, as Google's protobuf reads them, against exact quantiles of the same latencies."""

import http.client
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from swarm.exporters.latency_buckets import BOUNDS_S, LOWEST, SCHEMA, ZERO_S, LatencyBuckets
from swarm.exporters.protobuf import CONTENT_TYPE
from tests.swarm.exporters.test_prometheus import OF, Stand, health, stand, window, worker

__all__ = ("stand",)

MESSAGES = {
    "LabelPair": ["name 1 STRING", "value 2 STRING"],
    "Gauge": ["value 1 DOUBLE"],
    "Counter": ["value 1 DOUBLE"],
    "Bucket": ["cumulative_count 1 UINT64", "upper_bound 2 DOUBLE"],
    "BucketSpan": ["offset 1 SINT32", "length 2 UINT32"],
    "Histogram": [
        *("sample_count 1 UINT64", "sample_sum 2 DOUBLE", "bucket 3 Bucket", "schema 5 SINT32"),
        *(
            "zero_threshold 6 DOUBLE",
            "zero_count 7 UINT64",
            "positive_span 12 BucketSpan",
            "positive_delta 13 SINT64",
        ),
    ],
    "Metric": ["label 1 LabelPair", "gauge 2 Gauge", "counter 3 Counter", "histogram 7 Histogram"],
    "MetricFamily": ["name 1 STRING", "help 2 STRING", "type 3 UINT32", "metric 4 Metric"],
    "Page": ["family 1 MetricFamily"],
}
"""What is written of client_model's metrics.proto, field by field; the enum as a number."""
REPEATED = ("label", "bucket", "metric", "family", "positive_span", "positive_delta")


def reader() -> Any:
    """The class of a Page, made by Google's protobuf."""
    file = FileDescriptorProto(name="metrics.proto", package="read", syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for own, number, kind in map(str.split, fields):
            told = message.field.add(name=own, number=int(number))
            told.label = told.LABEL_REPEATED if own in REPEATED else told.LABEL_OPTIONAL
            if kind in MESSAGES:
                told.type, told.type_name = told.TYPE_MESSAGE, f".read.{kind}"
            else:
                told.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind}")
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("read.Page"))


def scraped(stand: Stand, accept: str) -> tuple[str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", stand.port, timeout=5)
    connection.request("GET", "/metrics", headers={"Accept": accept})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.headers["Content-Type"], body


def families(stand: Stand) -> dict[str, Any]:
    """By name, as they are read; each is made a field of one message, its length already before it."""
    kind, body = scraped(stand, f"{CONTENT_TYPE};q=0.7,text/plain;version=0.0.4;q=0.3")
    assert kind == CONTENT_TYPE
    page, whole, at = reader()(), bytearray(), 0
    while at < len(body):
        length, shift, begin = 0, 0, at
        while True:
            length |= (body[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if body[at - 1] < 0x80:
                break
        at += length
        whole += b"\x0a" + body[begin:at]
    page.ParseFromString(bytes(whole))
    return {family.name: family for family in page.family}


def native_buckets(histogram: Any) -> Iterator[tuple[float, float, int]]:
    """(lower bound, upper bound, how many) of those that are filled, as the format's specification has it."""
    deltas, index, count = iter(histogram.positive_delta), 0, 0
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            count += next(deltas)
            yield 2 ** ((index - 1) / 2**histogram.schema), 2 ** (index / 2**histogram.schema), count
            index += 1


def test_both_kinds_of_quantiles_lie_within_a_bucket_of_the_exact_ones(stand: Stand) -> None:
    drawn = np.random.default_rng(3).lognormal(np.log(20e6), 1.2, 20_000).astype(np.int64) // 1000 * 1000
    for part in np.array_split(drawn, 5):
        stand.live.on_window(window(part.tolist()))
    (metric,) = families(stand)["inferswarm_latency_seconds"].metric
    found, exact_s = metric.histogram, np.sort(drawn) / 1e9
    assert {pair.name: pair.value for pair in metric.label} == OF
    assert (found.sample_count, found.schema, found.zero_count, found.zero_threshold) == (
        20_000, SCHEMA, 0, ZERO_S,
    )  # fmt: skip
    assert found.sample_sum == pytest.approx(exact_s.sum(), rel=5e-4)
    native = list(native_buckets(found))
    counted = np.cumsum([count for *_, count in native])
    assert counted[-1] == 20_000
    for share in (0.01, 0.5, 0.9, 0.95, 0.99, 0.999):
        rank = int(np.ceil(share * 20_000))
        lower, upper, _ = native[int(np.searchsorted(counted, rank))]
        assert upper / lower == pytest.approx(2 ** (1 / 16))
        assert lower * 0.9995 <= exact_s[rank - 1] <= upper * 1.0005
        classic = next(one for one in found.bucket if one.cumulative_count >= rank)
        bounds = (0.0, *BOUNDS_S)
        assert (
            bounds[bounds.index(classic.upper_bound) - 1] <= exact_s[rank - 1] <= classic.upper_bound * 1.001
        )


def test_every_value_lies_in_its_native_bucket(stand: Stand) -> None:
    """Next to nothing, gaps of many buckets, one hour, and what came again with more in it."""
    some = [0, 1_000, 976_000, 1_000_000_000, 3_600_000_000_000]
    stand.live.on_window(window(some[:3], second=7))
    stand.live.on_window(window([*some, 1_000_000_000], second=7))
    found = families(stand)["inferswarm_latency_seconds"].metric[0].histogram
    native = list(native_buckets(found))
    assert (found.zero_count, found.sample_count, len(found.positive_span)) == (1, 6, 4)
    assert [count for *_, count in native] == [1, 1, 2, 1]
    for (lower, upper, _), value_ns in zip(native, some[1:], strict=True):
        assert lower < value_ns / 1e9 * 1.0005
        assert value_ns / 1e9 * 0.9995 <= upper
    assert 2 ** (LOWEST / 2**SCHEMA) == ZERO_S


def test_counters_and_gauges_are_those_of_the_text(stand: Stand) -> None:
    stand.live.on_window(window([5_000_000] * 300, failures={"reset": 2}))
    stand.live.on_health(health(w0=worker(40_000_000, users=3)))
    found, told = families(stand), stand.scrape()
    values = {
        name + str(sorted((pair.name, pair.value) for pair in metric.label)): getattr(metric, kind).value
        for name, family in found.items()
        for kind in [{0: "counter", 1: "gauge"}.get(family.type)]
        for metric in family.metric
        if kind
    }
    text = {name: value for name, value in told.items() if "latency" not in name}
    assert (sorted(values.values()), len(values)) == (sorted(text.values()), len(text))
    assert {name for name in found if "latency" not in name} == {name.partition("{")[0] for name in text}
    assert found["inferswarm_users"].help == "Users on all workers"


def test_a_scraper_that_does_not_prefer_it_gets_text_without_native_histograms(stand: Stand) -> None:
    stand.live.on_window(window([5_000_000]))
    plain, page = scraped(stand, f"text/plain;version=0.0.4,{CONTENT_TYPE};q=0.1")
    assert plain.startswith("text/plain")
    assert page == scraped(stand, "")[1]
    assert scraped(stand, "application/openmetrics-text;version=1.0.0")[0].startswith(
        "application/openmetrics"
    )
    assert scraped(stand, "application/vnd.google.protobuf;proto=other;encoding=delimited")[0] == plain


def test_nothing_counted_is_no_span() -> None:
    found = LatencyBuckets().exponential()
    assert (found.count_value, found.pos_spans, found.pos_deltas) == (0, [], [])
