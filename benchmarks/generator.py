"""What does a request cost the generator? Against a plain socket, stock Locust and other load generators.

python -m benchmarks.generator [--quick] [--write]     about 14 minutes with --quick, 35 without

Every arm is a process pinned to one core; null servers, which answer at once, are pinned to another. In each
repeat all arms of a cell follow one another, in an order drawn by a seed; ratios are of the same repeat.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.generating.arm import Told
from benchmarks.generating.arms import Arms, Cells, arms_of
from benchmarks.generating.children import Hung, null_server, run
from benchmarks.generating.figures import Cell, table
from benchmarks.generating.judging import OURS, judge
from benchmarks.generating.kinds import KINDS, MACHINE
from benchmarks.generating.page import about, write_page
from reports.format import plural

BODIES_S = 120.0
REPEATS = 5
USERS = (1, 16, 128)
FEW_CORES = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, judge; 0 where every bound holds, 2 where it cannot run here."""
    options = read_options(argv)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < FEW_CORES:
        print("benchmarks.generator needs two cores, one for the client and one for the server: it has one")
        return 2
    cells = cells_of(options.quick, options.kinds, options.users)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        machine = write_bodies(folder, cores[0])
        ports = {
            protocol: stack.enter_context(null_server(f"null_{protocol}", cores[1]))
            for protocol in ("http", "grpc", "http2")
        }
        arms = Arms(folder, ports, cores[0], options.seconds, options.perf_analyzer, options.against)
        measured = measure(arms, cells, options.repeats, options.quick, random.Random(options.seed))
    shown = table(measured, OURS)
    print(f"\n{shown}\n")
    facts = about(machine, arms.versions, options)
    print(f"{facts}\n")
    code = judge(measured, arms.absent)
    if options.write:
        write_page(facts, shown)
    return code


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generator", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what has a bound")
    parser.add_argument("--repeats", type=at_least_one, default=REPEATS, help="of each cell (default: 5)")
    parser.add_argument("--seconds", type=positive, default=2.0, help="on the clock, of each arm")
    parser.add_argument("--seed", type=int, default=0, help="draws the order of the arms")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="KIND",
                        help=f"kinds of request: {', '.join(KINDS)} (default: all)")  # fmt: skip
    parser.add_argument("--users", nargs="+", type=at_least_one, default=list(USERS), metavar="N",
                        help="numbers of users (default: 1 16 128)")  # fmt: skip
    parser.add_argument("--against", type=Path, metavar="TREE",
                        help="a checkout of another commit, which is measured beside")  # fmt: skip
    parser.add_argument("--perf-analyzer", metavar="PATH", help="the program, where it is not on the PATH")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    return parser.parse_args(argv)


def at_least_one(text: str) -> int:
    """A whole number above 0."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least 1")
    return int(text)


def positive(text: str) -> float:
    """Seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; give seconds above 0, such as 2")
    return value


def cells_of(quick: bool, kinds: Sequence[str], users: Sequence[int]) -> Cells:
    """The cells, each a kind of request and a number of users."""
    levels = [level for level in users if level in (1, 16)] if quick else users
    return [(kind, level) for kind in kinds for level in levels]


def write_bodies(folder: Path, core: int) -> dict[str, str]:
    """The requests, written once by the suite's own code; what it says of the machine."""
    try:
        done = run([sys.executable, "-m", "benchmarks.generating.bodies", str(folder)], core, BODIES_S)
    except Hung:
        raise SystemExit("the requests were not written within two minutes; is the disk slow?") from None
    if done.code:
        raise SystemExit(f"the requests could not be written:\n{done.text}")
    machine: dict[str, str] = json.loads((folder / MACHINE).read_text())
    return machine


def measure(
    arms: Arms, cells: Cells, repeats: int, quick: bool, order: random.Random
) -> dict[Cell, dict[str, list[Told | None]]]:
    """Every arm of every cell, `repeats` times."""
    measured: dict[Cell, dict[str, list[Told | None]]] = {
        cell: {arm: [] for arm in arms_of(cell, quick, arms.peers, arms.against)} for cell in cells
    }
    for repeat in range(repeats):
        for cell, told in measured.items():
            for arm in order.sample(list(told), len(told)):
                told[arm].append(arms.measure(arm, cell))
            print(
                f"repeat {repeat + 1} of {repeats}: {cell[0]}, {plural(cell[1], 'user')}",
                file=sys.stderr,
                flush=True,
            )
    return measured


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
