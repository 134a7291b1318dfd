"""Is the planted cause named? Set-ups on real servers, each with one thing in its way.

python -m benchmarks.planted [PART OF A NAME …]     three times, or only the set-ups with such names
python -m benchmarks.planted --list                 their names, and what must be named
"""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import argparse
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.planting import http2, machines, models, own_parts, peers, proxies
from benchmarks.planting.found import Found
from benchmarks.planting.running import run
from benchmarks.planting.setup import Setup

TIMES = 3
SETUPS: tuple[Setup, ...] = (
    *own_parts.SETUPS,
    *proxies.SETUPS,
    *peers.SETUPS,
    *http2.SETUPS,
    *machines.SETUPS,
    *models.SETUPS,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the set-ups; 0 where every verdict is the truth."""
    options = read_options(argv)
    chosen = [
        setup for setup in SETUPS if not options.names or any(part in setup.name for part in options.names)
    ]
    if options.list:
        print("\n".join(f"{setup.name:<56}{setup.truth}" for setup in chosen))
        return 0
    # SIGTERM, too, takes down processes, links and cgroups on its way out.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    wrong = 0
    for time_number in range(1, options.times + 1):
        print(f"run {time_number} of {options.times}", flush=True)
        for setup in chosen:
            for found in run_in(options.keep, setup, time_number):
                wrong += bool(found.wrong)
                print(line_of(setup, found), flush=True)
    print(f"\n{f'{wrong} verdicts were wrong' if wrong else 'every cause was named'}")
    return 1 if wrong else 0


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; it ends the program where nothing would run, or not all that is named."""
    made = parser()
    options = made.parse_args(argv)
    if options.times < 1:
        made.error(f"--times {options.times}: give a whole number, at least 1")
    for part in options.names:
        if not any(part in setup.name for setup in SETUPS):
            made.error(f"no set-up has {part!r} in its name: --list prints the names")
    return options


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.planted", description=__doc__)
    made.add_argument("names", nargs="*", help="parts of the names of set-ups (default: all)")
    made.add_argument("--times", type=int, default=TIMES, help="runs in a row (default: %(default)s)")
    made.add_argument("--keep", type=Path, metavar="DIR", help="where the studies' folders are left")
    made.add_argument("--list", action="store_true", help="print the set-ups and run none")
    return made


def run_in(keep: Path | None, setup: Setup, time_number: int) -> list[Found]:
    """One set-up, in a folder that is left or removed."""
    with ExitStack() as stack:
        if keep is None:
            return run(setup, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        name = re.sub(r"[^a-z0-9]+", "-", setup.name.lower()).strip("-")
        folder = keep.absolute() / f"{name}-{time_number}"
        folder.mkdir(parents=True)
        print(f"  {folder}", flush=True)
        return run(setup, folder)


def line_of(setup: Setup, found: Found) -> str:
    """A verdict beside its truth, with what was said and what is wrong."""
    name = f"{setup.name}, {found.users} users" if setup.more else setup.name
    caveats = f"\n      caveats: {', '.join(found.caveats)}" if setup.caveats else ""
    wrong = f"   {found.wrong}" if found.wrong else ""
    said = f"\n      {found.evidence}\n      {found.advice}".rstrip()
    return f"  {name:<56}{found.truth:<30}{found.code}{wrong}{said}{caveats}"


if __name__ == "__main__":
    sys.exit(main())
