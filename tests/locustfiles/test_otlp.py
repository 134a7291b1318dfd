"""A real study with `--otlp-url` and `--traceparent`: what a collector has is what the study's files say.

The server is the real tritonserver, whose own spans must be children of ours.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from tests.locustfiles.console import Console, study
from tests.swarm.exporters.otlp_receiver import Receiver, receiving, values_of

pytestmark = [pytest.mark.system, pytest.mark.slow]

FEW = ("--cells", "*/b1/c8", "--iterations", "20", "--seconds", "3", "--warm-up", "1")


def exported(tmp_path: Path, receiver: Receiver, *words: str) -> Console:
    """A whole study of the emulated model, a tenth of its requests traced."""
    to = ("--otlp-url", receiver.url, "--traceparent", "0.1")
    console = study(tmp_path, "--emulate", "5+0", *FEW, *to, *words)
    # Elsewhere much goes on: a client that is short of processor time makes it 3.
    assert console.wait(150) in (0, 3), console.text
    assert "missed events" not in console.text
    assert "not pushed" not in console.text
    return console


def counted(receiver: Receiver, name: str, **wanted: str) -> dict[str, float]:
    """A total of measure phases by cell."""
    points = [(values_of(point), point) for point in receiver.metrics[name].sum.data_points]
    wanted |= {"phase": "measure"}
    return {
        told["cell"]: point.as_int or point.as_double
        for told, point in points
        if all(told[label] == value for label, value in wanted.items())
    }


def test_metrics_and_spans_are_the_studys_and_the_servers_spans_join_them(tmp_path: Path) -> None:
    with receiving() as receiver:
        console = exported(tmp_path, receiver)
        cells = {row["cell"]: row for row in console.cells()}
        assert counted(receiver, "inferswarm.requests", outcome="ok") == {
            name: int(row["requests"]) for name, row in cells.items()
        }
        assert counted(receiver, "inferswarm.images") == {
            name: int(row["images"]) for name, row in cells.items()
        }
        latencies = receiver.metrics["inferswarm.latency"].exponential_histogram.data_points
        for point in latencies:
            told, row = values_of(point), cells[values_of(point)["cell"]]
            if told["phase"] == "measure":
                assert point.count == sum(point.positive.bucket_counts) == int(row["requests"])
                mean_ms = 1_000 * point.sum / point.count
                assert mean_ms == pytest.approx(float(row["latency_mean_ms"]), rel=2e-3)
        ours = [span for service, span in receiver.spans if service == "inferswarm"]
        whole = {span.trace_id.hex(): span for span in ours if not span.parent_span_id}
        rows = parquet.read_table(console.result() / "results.parquet").to_pylist()
        check_rows(rows, whole)
        for name, row in cells.items():
            share = sum(one["cell"] == name and one["trace_id"] != "" for one in rows) / int(row["requests"])
            assert share == pytest.approx(0.1, abs=0.02)
        check_server(receiver, whole)


def check_rows(rows: list[dict[str, Any]], whole: dict[str, Any]) -> None:
    """Each row with a trace id has its span, with the same times."""
    traced = {row["trace_id"]: row for row in rows if row["trace_id"]}
    of_measure = {
        name: span for name, span in whole.items() if values_of(span)["inferswarm.phase"] == "measure"
    }
    assert of_measure.keys() == traced.keys()
    for name, row in traced.items():
        span, began_ns = whole[name], row["intended_utc_ns"] + row["send_delay_ns"]
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
            began_ns,
            began_ns + row["service_ns"],
        )
        assert values_of(span)["inferswarm.cell"] == row["cell"]


def check_server(receiver: Receiver, whole: dict[str, Any]) -> None:
    """Triton's span of a request is a child of ours and lies within it; it has none of other requests."""
    theirs = [span for service, span in receiver.spans if service == "triton-emulated"]
    first = [span for span in theirs if span.name == "InferRequest"]
    assert {span.trace_id.hex() for span in theirs} <= whole.keys()
    joined = Counter[str]()
    for span in first:
        own = whole[span.trace_id.hex()]
        assert span.parent_span_id == own.span_id
        assert own.start_time_unix_nano <= span.end_time_unix_nano <= own.end_time_unix_nano + 50_000_000
        joined[own.name.partition(" ")[0]] += 1
    sent = Counter(span.name.partition(" ")[0] for span in whole.values())
    # Over gRPC tritonserver 2.51 leaves some out, whoever asks it.
    assert joined["POST"] == sent["POST"] > 20
    assert joined["inference.GRPCInferenceService/ModelInfer"] >= 0.8 * (sent.total() - sent["POST"]) > 20


def test_of_several_workers_and_a_library_all_spans_come_though_no_result_is_kept(tmp_path: Path) -> None:
    with receiving() as receiver:
        words = ("--processes", "2", "--raw-results", "0", "--client", "library")
        console = exported(tmp_path, receiver, *words)
        assert not (console.result() / "results.parquet").exists()
        found = Counter[str]()
        for service, span in receiver.spans:
            told = values_of(span)
            if service == "inferswarm" and told.get("inferswarm.phase") == "measure":
                found[told["inferswarm.cell"]] += 1
        for row in console.cells():
            assert found[row["cell"]] == pytest.approx(
                0.1 * int(row["requests"]), abs=0.02 * int(row["requests"])
            )


def test_a_collector_that_dies_does_not_hurt_the_study(tmp_path: Path) -> None:
    with receiving() as receiver:
        to = ("--otlp-url", receiver.url, "--traceparent", "1")
        console = study(tmp_path, "--emulate", "5+0", *FEW, *to)
        console.wait_for("[1/2]", 60)
        receiver.status = 400
        assert console.wait(150) in (0, 3), console.text
    assert "--otlp-url: spans of " in (console.result() / "study.json").read_text()
    assert "HTTP status 400" in console.text
    assert len(console.cells()) == 2
