"""A study from the console against a stand-in service: whole, distributed, failing, interrupted."""

import csv
import signal
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import CELLS, SHORT, all_gone, study
from tests.processes import free_port, wait_until

pytestmark = pytest.mark.system

FOR_A_MEDIAN = ("--iterations", "20")
"""Of fewer results none is told."""


def test_a_whole_study(start_service: StartService, tmp_path: Path) -> None:
    port = start_service("--delay-ms", "20")
    console = study(tmp_path, "--pytorch-url", f"http://127.0.0.1:{port}", *SHORT, *FOR_A_MEDIAN)
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == CELLS
    for row in rows.values():
        assert int(row["requests"]) >= 20
        assert row["failures"] == row["abandoned"] == "0"
        assert float(row["latency_p50_ms"]) >= 20
        assert float(row["server_compute_ms"]) == pytest.approx(20, rel=0.01)
        assert int(row["images"]) == int(row["requests"]) * int(row["batch"])
        assert "counts-mismatch" not in row["caveats"]
    assert float(rows["pytorch-http/b1/c1"]["images_per_s"]) <= 50
    assert float(rows["pytorch-http/b1/c8"]["images_per_s"]) > 100
    assert console.ledger()[-1]["status"] == "complete"
    names = {path.name for path in console.result().iterdir()}
    assert names >= {"study.json", "cells.csv", "timeline.csv", "ledger.jsonl", "summary.md", "report.html"}
    assert "[3/3]" in console.text
    rows = [console.text.index(f"\n{row} ") for row in ("Best", "Confidence", "Bottleneck", "Next step")]
    assert [console.text.index("[3/3]"), *rows] == sorted([console.text.index("[3/3]"), *rows])
    assert "Serial latency, p50" not in console.text, "tables are printed with --tables"
    assert "### Serial latency, p50" in (console.result() / "summary.md").read_text()


def test_locusts_own_percentiles_have_three_digits_in_every_process(
    start_service: StartService, tmp_path: Path
) -> None:
    """Its own rounding knows only tens between 100 ms and 1 s."""
    port = start_service("--delay-ms", "144")
    csvs = ("--csv", str(tmp_path / "own"), "--processes", "2", "--cells", "*/b1/c1")
    more = (*FOR_A_MEDIAN, "--seconds", "3", "--warm-up", "1")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *csvs, *more)
    assert console.wait(60) == 0, console.text
    with (tmp_path / "own_stats.csv").open() as lines:
        (own,) = [row for row in csv.DictReader(lines) if row["Name"] == "pytorch-http/b1/c1"]
    (row,) = console.cells()
    assert float(own["50%"]) == pytest.approx(float(row["service_p50_ms"]), abs=1)
    assert float(own["Requests/s"]) == pytest.approx(float(row["requests_per_s"]), rel=1e-3)
    assert "Aggregated" not in console.text
    assert "Response time percentiles" not in console.text
    assert 144 <= float(own["50%"]) < 150


def test_a_run_time_ends_a_study_in_order(start_service: StartService, tmp_path: Path) -> None:
    port = start_service("--delay-ms", "20")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", "--seconds", "60", "-t", "4s")
    assert console.wait(30) == 3, console.text
    footer = console.ledger()[-1]
    assert (footer["status"], footer["reason"]) == ("interrupted", "--run-time is over")
    assert len(console.cells()) == 1


def test_live_figures_for_prometheus(start_service: StartService, tmp_path: Path) -> None:
    port, own = start_service("--delay-ms", "20"), free_port()
    target = ("--pytorch-url", f"127.0.0.1:{port}", "--prometheus-port", str(own), "--cells", "*/b1/c8")
    console = study(tmp_path, *target, "--seconds", "30", "--warm-up", "1")
    wait_until(lambda: measured_by_prometheus(own) > 100, 40, lambda: console.text)
    counted = measured_by_prometheus(own)
    console.signal(signal.SIGINT)
    assert console.wait(10) == 3
    (row,) = console.cells()
    assert 100 < counted <= int(row["requests"])


def measured_by_prometheus(port: int) -> float:
    """Successes of the measure phase, as the exporter tells them; 0 while it does not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
            page = reply.read().decode()
    except OSError:
        return 0
    found = [
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "inferswarm_requests_total"
        and (sample.labels["phase"], sample.labels["outcome"]) == ("measure", "ok")
    ]
    return sum(found)


def test_failures_give_exit_code_1(start_service: StartService, tmp_path: Path) -> None:
    port = start_service("--wrong-after", "70", "--delay-ms", "20")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT)
    assert console.wait(60) == 1, console.text
    assert "wrong-embedding" in (console.result() / "summary.md").read_text()
    assert sum(int(row["failures"]) for row in console.cells()) > 0


def test_a_service_that_dies_leaves_an_inconclusive_study_that_ends(
    start_service: StartService, tmp_path: Path
) -> None:
    port = start_service("--die-after", "120")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT)
    assert console.wait(60) == 3, console.text
    ends = [r for r in console.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert len(ends) == 3
    assert ends[-1]["status"] == "failed"
    kinds = {kind for r in console.ledger() if r["kind"] == "window" for kind in r["failures"]}
    assert kinds == {"refused", "reset"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("processes", [(), ("--processes", "2")], ids=["local", "processes"])
def test_a_signal_ends_it_in_order(
    start_service: StartService, tmp_path: Path, number: signal.Signals, processes: tuple[str, ...]
) -> None:
    port = start_service("--delay-ms", "60")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT, *processes)
    console.wait_for("[2/3]", 40)
    family = console.family()
    console.signal(number)
    assert console.wait(10) == 3, console.text
    assert all_gone(family)
    records = console.ledger()
    assert records[-1]["status"] == "interrupted"
    done = [r["cell"] for r in records if r["kind"] == "run" and r.get("status") == "done"]
    assert len(done) >= 2
    assert {row["cell"] for row in console.cells()} >= set(done)
    assert "report.html" in console.text
