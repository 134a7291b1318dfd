"""`--trace` for real: a tritonserver that sleeps and traces, and its trace of every measured request."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from reports.histogram.buckets import percentiles_ns
from reports.histogram.codec import merged
from tests.locustfiles.console import Console, study

pytestmark = [pytest.mark.system, pytest.mark.slow]

MS = 1_000_000
ONE_USER = ("--cells", "*/b1/c1", "--iterations", "20", "--seconds", "0.5", "--warm-up", "1")


def parts_of(record: dict[str, Any]) -> dict[str, float]:
    """The median of each part in nanoseconds."""
    texts = record["histograms"]
    return {name: percentiles_ns(merged([text]), [50])[0] or 0.0 for name, text in texts.items()}


def traced(console: Console) -> dict[str, dict[str, Any]]:
    """The `trace` records of its ledger by cell."""
    return {record["cell"]: record for record in console.ledger() if record["kind"] == "trace"}


def test_every_measured_request_is_found_and_its_parts_are_within_the_clients_wait(tmp_path: Path) -> None:
    console = study(tmp_path, "--emulate", "20+0", "--floor", "--trace", *ONE_USER)
    assert console.wait(120) == 0, console.text
    rows = parquet.read_table(console.result() / "results.parquet").to_pylist()
    assert len({row["request_id"] for row in rows}) == len(rows)
    assert {len(row["request_id"]) for row in rows} == {16}
    records = traced(console)
    for way in ("http", "grpc"):
        cell = f"emulated-{way}/b1/c1"
        waits_ns = sorted(row["wait_ns"] for row in rows if row["cell"] == cell)
        assert records[cell]["requests"] == records[cell]["joined"] == len(waits_ns) >= 20
        median_ns, parts = waits_ns[(len(waits_ns) - 1) // 2], parts_of(records[cell])
        assert parts["compute"] >= 20 * MS
        assert parts["queue"] + parts["input"] + parts["compute"] <= 1.01 * parts["server"]
        assert parts["server"] <= 1.01 * median_ns
        assert parts["outside"] < median_ns - 20 * MS
        assert ("receive" in parts) == (way == "http")
        floor = f"emulated-{way}-floor/b1/c1"
        assert records[floor]["joined"] == records[floor]["requests"] >= 20
        assert parts_of(records[floor])["compute"] < 20 * MS
    runs = json.loads((console.result() / "study.json").read_text())["runs"]
    assert {run["trace"]["joined"] for run in runs} == {record["joined"] for record in records.values()}
    assert not [run for run in runs for doubt in run["caveats"] if doubt["code"] == "trace-gap"]
    assert "Triton&#39;s trace" in (console.result() / "report.html").read_text()
    assert [path.name for path in (console.result() / "logs").iterdir()] == ["emulated.log"]


def test_requests_that_were_not_kept_are_a_gap_and_no_failure(tmp_path: Path) -> None:
    console = study(
        tmp_path, "--emulate", "20+0", "--trace", *ONE_USER, "--raw-results", "5", "--client", "library"
    )
    assert console.wait(120) == 0, console.text
    first, second = traced(console).values()
    assert (first["requests"], first["joined"]) == (5, 5)
    assert (second["requests"], second["joined"], second["histograms"]) == (0, 0, {})
    gaps = [r["text"] for r in console.ledger() if r["kind"] == "caveat" and r["code"] == "trace-gap"]
    assert [text.split(" of ")[0] for text in gaps] == [
        "--raw-results left room for 5", "--raw-results left room for 0",
    ]  # fmt: skip


def test_a_study_without_it_names_no_request_and_has_no_trace(tmp_path: Path) -> None:
    console = study(tmp_path, "--emulate", "20+0", *ONE_USER)
    assert console.wait(120) == 0, console.text
    assert traced(console) == {}
    rows = parquet.read_table(console.result() / "results.parquet").to_pylist()
    assert {row["request_id"] for row in rows} == {""}
    assert {row["encode_ns"] for row in rows} == {0}
