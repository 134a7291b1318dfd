"""What a study says of where the time goes when a server does not tell, and of the connections it had."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.locustfiles.console import Console, study
from tests.stand_ins import stand_in

pytestmark = pytest.mark.system

AMOUNTS = ("--iterations", "20", "--seconds", "1", "--warm-up", "1")


def the_run(console: Console, name: str) -> dict[str, Any]:
    runs = json.loads((console.result() / "study.json").read_text())["runs"]
    (found,) = [run for run in runs if run["cell"] == name]
    return dict(found)


def test_statistics_that_are_off_leave_the_parts_empty_and_no_wrong_limit(tmp_path: Path) -> None:
    """A server of 30 ms, of which nothing but its answers can be had."""
    with stand_in("fake_triton.py", "--delay-ms", "30", "--no-statistics") as address:
        console = study(tmp_path, "--emulated-grpc-url", address, "--cells", "*/b1/c1", *AMOUNTS)
        console.wait(60)
    (row,) = console.cells()
    assert row["server_ms"] == row["server_queue_ms"] == row["server_compute_ms"] == ""
    assert row["executed_batch"] == ""
    assert "probe-gap" in row["caveats"]
    assert row["limit"] == "inconclusive"
    # How much of it falls to `network` depends on when the acknowledgement came (docs/attribution.md).
    assert float(row["network_ms"]) + float(row["unexplained_ms"]) >= 29
    run = the_run(console, "emulated-grpc/b1/c1")
    assert "server" in run["limit"]["evidence"]
    assert sum(part or 0 for part in run["breakdown"].values()) == pytest.approx(
        1e6 * float(row["latency_mean_ms"]), rel=1e-6
    )


@pytest.mark.parametrize(("channels", "seen"), [("shared", 1), ("per-user", 16)])
def test_connections_of_a_study_are_those_that_were_asked_for(
    tmp_path: Path, channels: str, seen: int
) -> None:
    with stand_in("fake_triton.py", "--delay-ms", "5") as address:
        options = ("--cells", "*/b1/c16", "--study", "full", "--channels", channels, *AMOUNTS)
        console = study(tmp_path, "--emulated-grpc-url", address, *options)
        console.wait(60)
    (row,) = console.cells()
    assert int(row["tcp_connections"]) == seen
    assert row["channels"] == channels
    assert "connections-differ" not in row["caveats"]
