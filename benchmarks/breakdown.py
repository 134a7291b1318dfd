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
from tests.locustfiles.console import Console

BATCHES = (1, 8)
HTTP_PCT, GRPC_PCT = 5.0, 10.0
SECONDS, STUDY_S = 10, 400


def main() -> int:
    """Run the cells, and say by the exit code whether little enough is unexplained in each."""
    bounds = Bounds(f"Unexplained share of mean latency, one user, {SECONDS} s a cell")
    for cell, run in sorted(measured().items()):
        grpc = "-grpc/" in cell
        breakdown = {name.removesuffix("_ns"): value or 0.0 for name, value in run["breakdown"].items()}
        latency_ns = sum(breakdown.values())
        share_pct = 100 * abs(breakdown["unexplained"]) / latency_ns
        bounds.beside(f"{cell}: mean latency", latency_ns / 1e6, "ms")
        bound_pct = GRPC_PCT if grpc else HTTP_PCT
        bounds.at_most("  unexplained", share_pct, bound_pct, "%")
        # Where the network takes all that is left, nothing is unexplained; on loopback that is little.
        together_pct = share_pct + 100 * breakdown["network"] / latency_ns
        bounds.at_most("  unexplained and network together", together_pct, bound_pct, "%")
        bounds.exactly("  failures", sum(run["failures"].values()), 0)
    return bounds.exit_code()


def measured() -> dict[str, dict[str, Any]]:
    """The runs of one study on embedded servers, by cell."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--cells", "*/b[18]/c1", "--seconds", str(SECONDS), "--results-dir", folder)
        console = Console((LOCUST, "-f", STEP7, "--headless", *options), Path(folder))
        try:
            console.wait(STUDY_S)
            runs = json.loads((console.result() / "study.json").read_text())["runs"]
        finally:
            console.end()
    return {run["cell"]: run for run in runs}


if __name__ == "__main__":
    sys.exit(main())
