"""Families of metrics in Prometheus' protobuf form, in which alone it reads native histograms.

The messages are those of io.prometheus.client, and fields are written by their numbers in its metrics.proto
(github.com/prometheus/client_model). A page is the families one after the other, each behind its length.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import NativeHistogram, Sample

from swarm.exporters.live import LatencyFamily
from swarm.exporters.metrics import LATENCY

CONTENT_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
TYPES = {"counter": 0, "gauge": 1, "histogram": 4}
VALUES = {"counter": 3, "gauge": 2}
"""The field of a Metric that has its value, by type."""
VARINT, DOUBLE, BYTES = 0, 1, 2
"""Wire types."""


def wanted(accept: str) -> bool:
    """Whether a scraper names this form first, as Prometheus does where it wants native histograms.

    >>> wanted(CONTENT_TYPE + ";q=0.7,text/plain;version=0.0.4;q=0.3"), wanted("text/plain," + CONTENT_TYPE)
    (True, False)
    """
    first = {part.strip() for part in accept.partition(",")[0].split(";")}
    return first >= set(CONTENT_TYPE.split("; "))


def page(families: Iterable[Metric]) -> bytes:
    """All of them."""
    return b"".join(_delimited(_family(family)) for family in families)


def _family(family: Metric) -> bytes:
    """A MetricFamily."""
    name = f"{family.name}_total" if family.type == "counter" else family.name
    head = _text(1, name) + _text(2, family.documentation) + _int(3, TYPES[family.type])
    made = _histograms(family) if isinstance(family, LatencyFamily) else _values(family)
    return head + b"".join(_bytes(4, metric) for metric in made)


def _values(family: Metric) -> Iterator[bytes]:
    """The Metrics of counters and gauges, one a sample."""
    for sample in family.samples:
        yield _labels(sample.labels.items()) + _bytes(VALUES[family.type], _double(1, sample.value))


def _histograms(family: LatencyFamily) -> Iterator[bytes]:
    """The Metrics of histograms, each of them whole."""
    buckets = [sample for sample in family.samples if sample.name == f"{family.name}_bucket"]
    for key, some in groupby(buckets, lambda sample: tuple(v for k, v in sample.labels.items() if k != "le")):
        yield _labels(zip(LATENCY.labels, key, strict=True)) + _bytes(7, _histogram(some, family.native[key]))


def _histogram(classic: Iterable[Sample], native: NativeHistogram) -> bytes:
    """A Histogram with both kinds of buckets."""
    return b"".join(
        [
            _int(1, int(native.count_value)),
            _double(2, native.sum_value),
            *(_bytes(3, _int(1, int(one.value)) + _double(2, float(one.labels["le"]))) for one in classic),
            _int(5, _zigzag(native.schema)),
            _double(6, native.zero_threshold),
            _int(7, int(native.zero_count)),
            *(
                _bytes(12, _int(1, _zigzag(span.offset)) + _int(2, span.length))
                for span in native.pos_spans or ()
            ),
            *(_int(13, _zigzag(delta)) for delta in native.pos_deltas or ()),
        ]
    )


def _labels(labels: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(_bytes(1, _text(1, name) + _text(2, value)) for name, value in labels)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _delimited(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | DOUBLE) + struct.pack("<d", value)


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _delimited(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _zigzag(value: int) -> int:
    """Small negative numbers as small ones: 0, -1, 1, -2 as 0, 1, 2, 3."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the highest bit set."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
