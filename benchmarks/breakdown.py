"""Do the parts add up to the latency? Real servers and the real model on loopback, one user, batches 1 and 8.

python -m benchmarks.breakdown
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.bounds import Bounds
from benchmarks.drive import LOCUST, STEP7
from tests.locustfiles.console import ONCE, Console

BATCHES = (1, 8)
MOST_PCT = 5.0
NEEDED = (
    *("send_delay", "connect", "encode", "send", "network", "server_queue", "server_compute", "server_other"),
    *("receive", "decode", "unexplained"),
)
"""Parts that every cell has, over HTTP and over gRPC alike."""
NEEDED_OF_GRPC = ("stream_wait", "flow_wait")
SECONDS, STUDY_S = 10, 400


def main() -> int:
    """Run the cells, and say by the exit code whether little enough is unexplained in each."""
    bounds = Bounds(f"Unexplained share of mean latency, one user, {SECONDS} s a cell")
    cells = measured()
    if not cells:
        bounds.unread("any cell")
    for cell, run in sorted(cells.items()):
        judge(bounds, cell, run)
    return bounds.exit_code()


def judge(bounds: Bounds, cell: str, run: dict[str, Any]) -> None:
    """One cell's shares by their bounds; a part that was not read is no 0 ms, and breaks them."""
    breakdown = {name.removesuffix("_ns"): value for name, value in run["breakdown"].items()}
    needed = (*NEEDED, *NEEDED_OF_GRPC) if "-grpc/" in cell else NEEDED
    missing = [name for name in needed if breakdown[name] is None]
    for name in missing:
        bounds.unread(f"{cell}: {name}")
    latency_ns = sum(value for value in breakdown.values() if value is not None)
    if not missing and latency_ns > 0:
        share_pct = 100 * abs(breakdown["unexplained"]) / latency_ns
        bounds.beside(f"{cell}: mean latency", latency_ns / 1e6, "ms")
        # Of what is unexplained, some may be the network's; only what is proven to be is not in it.
        bounds.at_most("  unexplained", share_pct, MOST_PCT, "%")
        bounds.beside("    of which may be the network's", 100 * may_be_ns(run) / latency_ns, "%")
        together_pct = share_pct + 100 * breakdown["network"] / latency_ns
        bounds.at_most("  unexplained and network together", together_pct, MOST_PCT, "%")
    elif not missing:
        bounds.unread(f"{cell}: mean latency")
    bounds.exactly("  failures", sum(run["failures"].values()), 0)


def may_be_ns(run: dict[str, Any]) -> float:
    """What may be the network's beyond what is proven; both are known where the network is."""
    return float(run["network_most_ns"] - run["breakdown"]["network_ns"])


def measured() -> dict[str, dict[str, Any]]:
    """The runs of one study on embedded servers, by cell."""
    with tempfile.TemporaryDirectory() as folder:
        options = (*ONCE, "--cells", "*/b[18]/c1", "--seconds", str(SECONDS), "--results-dir", folder)
        with Console((LOCUST, "-f", STEP7, "--headless", *options), Path(folder)) as console:
            console.wait(STUDY_S)
            runs = json.loads((console.result() / "study.json").read_text())["runs"]
    return {run["cell"]: run for run in runs}


if __name__ == "__main__":
    sys.exit(main())
