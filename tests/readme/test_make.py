"""`make step7` and `make web`, which take the default ports."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import csv
import os
import re
import signal
from pathlib import Path

import pytest

from tests.locustfiles.console import ENDPOINTS, ONCE, ROOT, Console
from tests.processes import is_listening, wait_until
from tests.readme.commands import command, run

pytestmark = [pytest.mark.system, pytest.mark.slow]


def check_row(row: dict[str, str]) -> None:
    """One cell of five real endpoints: nothing failed, and what the server counted fits what was sent."""
    assert (row["failures"], row["abandoned"]) == ("0", "0")
    assert int(row["requests"]) >= 5
    assert float(row["server_compute_ms"]) > 1
    assert float(row["images_per_s"]) * float(row["measure_s"]) == pytest.approx(int(row["images"]), rel=1e-3)
    assert float(row["worker_cpu_pct"]) > 0
    assert not {"counts-mismatch", "probe-gap"} & set(row["caveats"].split(";"))
    if row["backend"] != "pytorch":
        assert float(row["executed_batch"]) >= int(row["batch"])
        assert float(row["request_bytes"]) > 602_112 * int(row["batch"])


@pytest.mark.timeout(580)
def test_make_step7(tmp_path: Path) -> None:
    # Too few results for a median of serial requests, of which on this processor each takes long.
    shorter = ["--iterations", "5", "--seconds", "1", "--warm-up", "2", *ONCE, "--cells", "'*/b[18]/*'"]
    console = run([*command("make step7"), f"ARGS={' '.join(shorter)}"], tmp_path, 540)
    (folder,) = re.findall(r"results in (results/\S+)/", console.text)
    after = console.text.partition("[15/15]")[2].splitlines()
    others = ("locust.main", "make[")
    said = [line for line in after[1:] if not any(other in line for other in others)]
    assert 8 <= len(said) <= 20, said
    for question in ("Best", "HTTP or gRPC", "Confidence", "Bottleneck", "Next step"):
        assert sum(line.startswith(f"{question} ") for line in said) == 1
    assert said[-1] == f"Report: {ROOT / folder / 'report.html'}"
    rows = list(csv.DictReader((ROOT / folder / "cells.csv").read_text().splitlines()))
    assert {row["endpoint"] for row in rows} == set(ENDPOINTS)
    assert len(rows) == 5 * 3
    for row in rows:
        check_row(row)
    assert "random (seed 0)" in (ROOT / folder / "report.html").read_text()
    shown = command("inferswarm report results")
    again = run([*shown[:-1], folder], tmp_path, 60)
    for table in ("Serial throughput", "Concurrent throughput, batch 1", "Server compute", "gRPC over HTTP"):
        assert table in again.text
    beside = command("inferswarm compare")
    compared = run([*beside[:-1], folder, "--out", str(tmp_path / "beside")], tmp_path, 60)
    assert "Base: step7-a100" in compared.text
    assert (tmp_path / "beside" / "compare.html").stat().st_size > 0


def test_make_web(tmp_path: Path) -> None:
    console = Console(command("make web"), tmp_path)
    try:
        wait_until(lambda: is_listening(8089), 240, lambda: console.text)
        os.killpg(console.process.pid, signal.SIGINT)
        console.wait(15)
    finally:
        console.end()
    assert not is_listening(8089)
