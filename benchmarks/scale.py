"""Where is the first limit? A real master, its link and its ledger, with up to 2,000 simulated workers.

python -m benchmarks.scale [--quick]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bounds import Bounds
from benchmarks.long_ledger import planned, write_study
from benchmarks.scaling.parts import shares
from benchmarks.sizes import shown
from reports.ledger.ledger import FILE_NAME
from tests.locustfiles.console import ROOT
from tests.processes import free_port

CORES, ASK_MS, LAG_MS, TO_LEDGER_MS, PEAK_MB = 1.0, 1_000, 1_000, 1_000, 2_000
JUDGED = 1_000
"""So many workers the bounds are for; more than that is only shown."""
MEASURE_S, REPORT_S, ALL_TELL_PER_S = 10, 60, 1_000
PATIENCE_S = 150
"""Four times what a crowd takes that the master can carry."""


@dataclass(frozen=True)
class Shape:
    """So many workers, each of which tells its progress once in so many seconds."""

    workers: int
    progress_s: float

    @property
    def judged(self) -> bool:
        """Whether the bounds are for it."""
        return self.workers <= JUDGED and self.progress_s == progress_s(self.workers)


def progress_s(workers: int) -> float:
    """Seconds between two messages of progress: ten a second, and no more than 1,000 a second of all.

    >>> progress_s(100), progress_s(3_000)
    (0.1, 3.0)
    """
    return max(0.1, workers / ALL_TELL_PER_S)


def shapes(quick: bool) -> list[Shape]:
    """The crowds; the last one tells of its progress as often as few workers do."""
    counts = (10, 100, 1_000) if quick else (10, 100, 300, 1_000, 2_000)
    found = [Shape(workers, progress_s(workers)) for workers in counts]
    return found if quick else [*found, Shape(JUDGED, 0.1)]


def main(argv: list[str]) -> int:
    """Measure, and say by the exit code whether the bounds hold at 1,000 workers."""
    quick = "--quick" in argv
    bounds = Bounds("A real master with SIMULATED workers, each of 100 requests/s, over loopback")
    for shape in shapes(quick):
        judge(bounds, shape, MEASURE_S)
    bounds.beside(f"Bookkeeping for {JUDGED} workers' second, without the link", JUDGED, "workers")
    for name, cores in shares(JUDGED).items():
        bounds.beside(f"  {name}", cores, "cores")
    for workers in (100, JUDGED):
        judge_report(bounds, workers)
    return bounds.exit_code()


def judge(bounds: Bounds, shape: Shape, seconds: float) -> None:
    """One crowd's figures, by their bounds where it is judged."""
    bounds.beside(f"{shape.workers} workers, progress every {shape.progress_s:g} s", shape.workers, "workers")
    try:
        master, crowd = seen(shape, seconds)
    except subprocess.SubprocessError:
        if shape.judged:
            bounds.unread("  what the master saw")
        else:
            bounds.beside("  the master did not come to the end within", PATIENCE_S, "s")
        return

    def bound(name: str, figure: float, most: float, unit: str) -> None:
        bounds.at_most(name, figure, most if shape.judged else None, unit)

    asks = sorted(master["asks_ms"])
    bounds.beside("  until all are ready", master["ready_s"], "s")
    bounds.beside("  Locust's link alone: heartbeats, statistics", master["link"]["cores"], "cores")
    bound("  master while they warm up", master["warm_up"]["cores"], CORES, "cores")
    bound("  master while they are measured", master["measure"]["cores"], CORES, "cores")
    bound("    its event loop's lag, p99", master["measure"]["lag_p99_ms"], LAG_MS, "ms")
    bound("  asking all, until the last reply: p50", asks[len(asks) // 2], ASK_MS, "ms")
    bound("    the longest of 30", asks[-1], ASK_MS, "ms")
    bounds.beside("  spawning, the longest of three", max(master["spawns_ms"]), "ms")
    bound("  worker's message to ledger: p99", master["to_ledger_ms"][1], TO_LEDGER_MS, "ms")
    bounds.beside("  ledger a minute", master["measure"]["ledger_bytes_per_s"] * 60 / 1e6, "MB")
    bounds.beside("  messages a second to the master", per_s(shape), "/s")
    bounds.beside("  simulated workers late by at most", crowd["late_s"] * 1e3, "ms")
    bounds.exactly("  workers lost", master["lost"], 0 if shape.judged else None)
    bounds.beside("  heartbeats left of 3, at the worst", master["least_heartbeats"])


def per_s(shape: Shape) -> float:
    """Messages a second while a phase is on: heartbeat, records, path, progress; statistics every 3 s."""
    return shape.workers * (1 + 1 + 1 + 1 / 3 + 1 / shape.progress_s)


def seen(shape: Shape, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the master saw, and what the crowd sent. Raises SubprocessError."""
    port = str(free_port())
    with tempfile.TemporaryDirectory() as folder:
        head = start("head", port, str(shape.workers), str(seconds), folder)
        crowd = start("crowd", port, str(shape.workers), str(shape.progress_s))
        try:
            return told(head), told(crowd)
        finally:
            for process in (head, crowd):
                process.kill()
                process.wait()


def start(name: str, *arguments: str) -> subprocess.Popen[str]:
    """A part of the simulation as a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.scaling.{name}", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line it printed. Raises SubprocessError."""
    output, _ = process.communicate(timeout=PATIENCE_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def judge_report(bounds: Bounds, workers: int) -> None:
    """What `reports show` needs for one run of a minute."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_study(folder, [planned("onnx-grpc", 1, workers)], REPORT_S, workers)
        size = (folder / FILE_NAME).stat().st_size / 1e6
        bounds.beside(f"Report of one run of {REPORT_S} s, {workers} workers: ledger", size, "MB")
        found = shown(folder)
        bounds.exactly("  exit code", found.exit_code, 0)
        bounds.beside("  time", found.wall_s, "s")
        bounds.at_most("  most memory", found.peak_mb, PEAK_MB, "MB")
        bounds.beside("  report.html", (folder / "report.html").stat().st_size / 1e6, "MB")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
