"""Do large studies still report? 24 hours with four workers, 1,000 workers, 1,000 cells, and a full step 7.

python -m benchmarks.sizes
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bounds import Bounds
from benchmarks.long_ledger import planned, write_study
from reports.ledger.ledger import FILE_NAME, Record

ROOT = Path(__file__).resolve().parents[1]

ENDPOINTS = ("pytorch-http", "onnx-http", "onnx-grpc", "openvino-http", "openvino-grpc")
BATCHES, LEVELS = (1, 4, 8, 16, 32), (8, 16)
"""Of a full step 7: one user at each batch, and more users at batch 1."""
PEAK_MB, PAGE_MB, FULL_S = 400, 6, 5
DAY_S = 86_400


@dataclass(frozen=True)
class Shape:
    """A study: its runs, how long each is measured, by how many workers, and in what time it must show."""

    name: str
    plan: Sequence[Record]
    seconds: int
    workers: int
    bound_s: float | None = None


@dataclass(frozen=True)
class Shown:
    """What it took to show a study: seconds in all and of a processor, megabytes at most, the exit code."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    exit_code: int


def main() -> int:
    """Write, show and say by the exit code whether all stays within its bounds."""
    bounds = Bounds("inferswarm report: time, memory and the size of report.html")
    for shape in shapes():
        with tempfile.TemporaryDirectory() as folder:
            judge(bounds, shape, Path(folder))
    return bounds.exit_code()


def shapes() -> list[Shape]:
    """The studies, smallest first."""
    full = [run for repeat in (1, 2, 3) for run in matrix(BATCHES, LEVELS, repeat)]
    many = matrix(range(1, 101), range(2, 102))
    return [
        Shape("a full step 7, 105 runs of 15 s, 2 workers", full, 15, 2, FULL_S),
        Shape("1,000 cells of 15 s, 2 workers", many, 15, 2),
        Shape("1,000 workers in one cell of 5 min", [planned("onnx-grpc", 1, 16)], 300, 1_000),
        Shape("24 h in one cell, 4 workers", [planned("onnx-grpc", 1, 16)], DAY_S, 4),
    ]


def matrix(batches: Sequence[int], levels: Sequence[int], repeat: int = 1) -> list[Record]:
    """Every endpoint serial at every batch, then at batch 1 with every level."""
    cells = [*((batch, 1) for batch in batches), *((1, level) for level in levels)]
    return [planned(name, batch, level, repeat) for name in ENDPOINTS for batch, level in cells]


def judge(bounds: Bounds, shape: Shape, folder: Path) -> None:
    """One study's figures by their bounds."""
    write_study(folder, shape.plan, shape.seconds, shape.workers)
    bounds.beside(f"{shape.name}: ledger", (folder / FILE_NAME).stat().st_size / 1e6, "MB")
    seen = shown(folder)
    bounds.exactly("  exit code", seen.exit_code, 0)
    bounds.at_most("  time", seen.wall_s, shape.bound_s, "s")
    bounds.beside("  time of a processor", seen.cpu_s, "s")
    bounds.at_most("  most memory", seen.peak_mb, PEAK_MB, "MB")
    page = folder / "report.html"
    bounds.at_most("  report.html", page.stat().st_size / 1e6 if page.exists() else None, PAGE_MB, "MB")


def shown(folder: Path) -> Shown:
    """Shows it in a process of its own, whose memory is looked at when it has ended."""
    command = [sys.executable, "-m", "reports", "show", "--quiet", str(folder)]
    began = time.monotonic()
    process = os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONPATH": str(ROOT)})
    _, status, used = os.wait4(process, 0)
    wall_s, cpu_s = time.monotonic() - began, used.ru_utime + used.ru_stime
    # Linux states memory in KiB
    return Shown(wall_s, cpu_s, used.ru_maxrss * 1024 / 1e6, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main())
