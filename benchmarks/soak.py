"""Does a long study stay as it began? Memory, descriptors, ledger and percentiles over an hour.

python -m benchmarks.soak [--minutes 60 | --quick] [--rate R] [--write]

A master and two workers, as `inferswarm run` starts them, send to the embedded emulated server at a
moderate rate; every process is looked at from outside. `--quick` takes two minutes and judges memory (by its
rise: for a slope it is too short), descriptors and counts alone: its percentiles cannot be told, least of all
where other work runs beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.bounds import Bounds
from benchmarks.generating.page import write_page
from benchmarks.soaking.figures import judge
from benchmarks.soaking.measured import soak_of
from benchmarks.soaking.validity import validity_of
from benchmarks.soaking.watching import Size, Watcher, sizes_of
from reports.ledger.ledger import FILE_NAME, LedgerError
from tests.locustfiles.console import ONCE, Console

STUDY, LEAKING = "locustfiles/step7.py", "benchmarks/studies/leaking.py"
ENDPOINTS = ("onnx-http", "onnx-grpc", "onnx-jpeg-http")
CELLS = {"grpc": "emulated-grpc-floor/*", "http": "emulated-http-floor/*", "jpeg": "emulated-jpeg-http/*"}
"""Tensors to the null model over gRPC and over HTTP; JPEG files to one that sleeps for a millisecond."""
EVERY_CELL = "emulated-*-*/*"
AROUND_S = 180.0
"""Most time for what comes before and after the load: servers, warm-ups, the report."""
WARM_UP_S = 8
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
LEAK = "SOAK_LEAK_KB_PER_S"
BROKEN, REFUSED = 1, 2


@dataclass(frozen=True)
class Length:
    """How long each cell is measured, how much of it is not judged, and how often processes are looked at."""

    cells: str
    seconds: float
    skipped_s: float
    every_s: float


def length(minutes: float, only: str, quick: bool) -> Length:
    """Of the study: the first 3 minutes of a cell, or its first quarter, are for caches and pools to fill."""
    if quick:
        # Over HTTP: what gRPC's own threads hold comes and goes by a megabyte, too much for so short a time.
        return Length(CELLS[only or "http"], 100.0, 25.0, 1.0)
    seconds = 60 * minutes / (1 if only else len(CELLS))
    return Length(
        CELLS.get(only, EVERY_CELL), seconds, min(180.0, seconds / 4), 5.0 if minutes >= 30 else 2.0
    )


def main(argv: Sequence[str]) -> int:
    """Run, judge, and say by the exit code whether the bounds hold: 0, 1 where one is broken, 3 if untold; 2
    where there was no study."""
    options = parsed(argv)
    wanted = length(options.minutes, options.only, options.quick)
    about = f"{wanted.seconds / 60:.3g} minutes a cell at {options.rate:g} requests/s, a master and 2 workers"
    bounds = Bounds(f"A long study: {about}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        seen = studied(folder, wanted, options.rate, options.leak)
        result = result_of(folder)
        if result is None or seen.code == REFUSED:
            print(f"\nthere was no study to judge (exit code {seen.code}); it said:\n{seen.said}")
            return REFUSED
        try:
            soak, validity = soak_of(result), validity_of(result, seen.code)
        except LedgerError as error:
            print(f"\nthe study's ledger cannot be read (exit code {seen.code}): {error}\n{seen.said}")
            return BROKEN
        tracks = seen.watcher.tracks.values()
        shown = judge(bounds, soak, validity, tracks, seen.sizes, wanted.skipped_s, options.quick)
    print(f"\n{shown}")
    if options.write:
        skipped = f"the first {wanted.skipped_s:g} s of each are not judged"
        facts = f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores\n- {about}; {skipped}"
        write_page(facts, shown, BEGIN, END)
    return bounds.exit_code()


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=about)
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="how long to measure, 6 at least (default: 60)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="two minutes: memory, descriptors and counts alone"
    )
    parser.add_argument("--only", choices=CELLS, default="", help="one cell instead of all")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second (default: 50)")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    planted = "plant a leak of so many KB a second in each worker, to see it caught"
    parser.add_argument("--leak", type=float, default=0.0, metavar="KB", help=planted)
    options = parser.parse_args(argv)
    if options.minutes < 6:
        parser.error(f"--minutes {options.minutes:g}: tells nothing; give 6 or more, or --quick")
    if options.write and (options.only or options.quick):
        parser.error("--write: the page's table is of all cells; leave out --only and --quick")
    return options


def command(folder: Path, wanted: Length, rate: float, leak: float) -> list[str]:
    """What a user would type."""
    asked = ("--emulate", "1+0", "--floor", "--endpoints", ",".join(ENDPOINTS), "--cells", wanted.cells)
    load = ("--rates", f"{rate:g}", "--arrivals", "poisson", "--seconds", f"{wanted.seconds:g}", *ONCE)
    place = ("--warm-up", str(WARM_UP_S), "--results-dir", str(folder))
    study = LEAKING if leak else STUDY
    return [sys.executable, "-m", "swarm", "run", "-f", study, "--workers", "2", *asked, *load, *place]


@dataclass(frozen=True)
class Seen:
    """A study that has ended: its processes, the sizes of its files, its exit code, what it printed."""

    watcher: Watcher
    sizes: dict[str, list[Size]]
    code: int
    said: str


def result_of(folder: Path) -> Path | None:
    """Where the study's ledger is; None where it was refused before it had one."""
    return next((path.parent for path in folder.glob(f"*/{FILE_NAME}")), None)


def studied(folder: Path, wanted: Length, rate: float, leak: float) -> Seen:
    """Run the study and look at it until it has ended; one that takes far too long is killed."""
    os.environ[LEAK] = f"{leak:g}"
    console = Console(command(folder, wanted, rate, leak), folder)
    watcher, sizes = Watcher(console.process.pid), dict[str, list[Size]]()
    most_s = wanted.seconds * (len(CELLS) if wanted.cells == EVERY_CELL else 1) + AROUND_S
    deadline = time.monotonic() + most_s
    try:
        while console.process.poll() is None and time.monotonic() < deadline:
            watcher.look()
            for name, size in sizes_of(folder, time.time()):
                sizes.setdefault(name, []).append(size)
            time.sleep(wanted.every_s)
    finally:
        console.end()
    return Seen(watcher, sizes, console.process.returncode, console.text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
