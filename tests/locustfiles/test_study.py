"""A study from the console against a stand-in service: whole, distributed, failing, interrupted."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import CELLS, SHORT, Console, all_gone, study

pytestmark = pytest.mark.system


def test_a_whole_study(start_service: StartService, consoles: list[Console], tmp_path: Path) -> None:
    port = start_service("--delay-ms", "20")
    console = study(tmp_path, "--pytorch-url", f"http://127.0.0.1:{port}", *SHORT)
    consoles.append(console)
    assert console.wait(60) == 0, console.text
    rows = {row["cell"]: row for row in console.cells()}
    assert set(rows) == CELLS
    for row in rows.values():
        assert int(row["requests"]) >= 3
        assert row["failures"] == row["abandoned"] == "0"
        assert float(row["latency_p50_ms"]) >= 20
        assert float(row["server_compute_ms"]) == pytest.approx(20, rel=0.01)
        assert int(row["images"]) == int(row["requests"]) * int(row["batch"])
        assert "counts-mismatch" not in row["caveats"]
    assert float(rows["pytorch-http/b1/c1"]["images_per_s"]) <= 50
    assert float(rows["pytorch-http/b1/c8"]["images_per_s"]) > 100
    assert console.ledger()[-1]["status"] == "complete"
    names = {path.name for path in console.result().iterdir()}
    assert names >= {"study.json", "cells.csv", "ledger.jsonl", "summary.md", "report.html"}
    assert "[4/4]" in console.text
    assert console.text.index("Serial latency, p50") > console.text.index("[4/4]")


def test_failures_give_exit_code_1(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    port = start_service("--wrong-after", "70")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT)
    consoles.append(console)
    assert console.wait(60) == 1, console.text
    assert "wrong-embedding" in (console.result() / "summary.md").read_text()
    assert sum(int(row["failures"]) for row in console.cells()) > 0


def test_a_service_that_dies_leaves_an_inconclusive_study_that_ends(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    port = start_service("--die-after", "60")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT)
    consoles.append(console)
    assert console.wait(60) == 3, console.text
    ends = [r for r in console.ledger() if r["kind"] == "run" and r["event"] == "end"]
    assert len(ends) == 4
    assert ends[-1]["status"] == "failed"
    kinds = {kind for r in console.ledger() if r["kind"] == "window" for kind in r["failures"]}
    assert kinds == {"refused", "reset"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("processes", [(), ("--processes", "2")], ids=["local", "processes"])
def test_a_signal_ends_it_in_order(
    start_service: StartService,
    consoles: list[Console],
    tmp_path: Path,
    number: signal.Signals,
    processes: tuple[str, ...],
) -> None:
    port = start_service("--delay-ms", "200")
    console = study(tmp_path, "--pytorch-url", f"127.0.0.1:{port}", *SHORT, *processes)
    consoles.append(console)
    console.wait_for("[2/4]", 40)
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
