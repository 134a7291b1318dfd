"""Fault drills: what breaks in the middle of a study, what the study must then say, and whether it does.

python -m benchmarks.drills [--only NAME …] [--times N] [--list] [--write]

Exit code: 0 where every drill went as expected, 1 where one did not, 3 where one was skipped, 2 for a wrong
option.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import gevent

from benchmarks.drilling.all import DRILLS
from benchmarks.drilling.drill import Drill, Outcome, carried_out, chosen, few_pictures
from benchmarks.drilling.table import about, line, write

OK, WRONG, USAGE, SKIPPED, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Carry the drills out, one after the other."""
    options = parser().parse_args(argv)
    try:
        allow(options)
        drills = chosen(DRILLS, options.only)
    except ValueError as error:
        print(f"benchmarks.drills: {error}", file=sys.stderr)
        return USAGE
    if options.list:
        for drill in drills:
            print(f"{drill.name:<18}{drill.cause}")
        return OK
    # gevent would print the interrupt before it hands it on.
    hub = gevent.get_hub()
    hub.NOT_ERROR = (*hub.NOT_ERROR, KeyboardInterrupt)
    try:
        began = time.monotonic()
        outcomes = rounds(drills, options.times)
    except KeyboardInterrupt:
        print("stopped; every process of the drill under way has been ended", flush=True)
        return INTERRUPTED
    if options.write:
        write(about(options.times, time.monotonic() - began), outcomes)
    return verdict(outcomes)


def parser() -> argparse.ArgumentParser:
    """The options."""
    text, _, codes = (__doc__ or "").partition("\n\n")
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.drills", description=text, epilog=codes.partition("\n\n")[2]
    )
    made.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these drills alone (default: all)"
    )
    made.add_argument(
        "--times", type=int, default=1, metavar="N", help="rounds in a row (default: %(default)s)"
    )
    made.add_argument("--list", action="store_true", help="tell the drills' names and faults, and run none")
    made.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    return made


def allow(options: argparse.Namespace) -> None:
    """Raises ValueError for options that ask for nothing, or for a part in the place of the whole table."""
    if options.times < 1:
        raise ValueError(f"--times {options.times}: give 1 or more")
    if options.write and options.only:
        raise ValueError("--write with --only: the table is of all drills; leave one of the two options out")


def rounds(drills: Sequence[Drill], times: int) -> list[list[Outcome]]:
    """Every drill's outcomes, by drill; each is printed as it comes."""
    outcomes: list[list[Outcome]] = [[] for _ in drills]
    with few_pictures() as pictures:
        for number in range(1, times + 1):
            print(f"round {number} of {times}: {len(drills)} drills", flush=True)
            for drill, of_one in zip(drills, outcomes, strict=True):
                of_one.append(carried_out(drill, pictures))
                print(line(of_one[-1]), flush=True)
                if of_one[-1].wrong:
                    print(of_one[-1].terminal[-3000:], flush=True)
    return outcomes


def verdict(outcomes: Sequence[Sequence[Outcome]]) -> int:
    """The last line, and the exit code."""
    every = [outcome for of_one in outcomes for outcome in of_one]
    wrong = sorted({outcome.drill.name for outcome in every if outcome.wrong})
    skipped = sorted({outcome.drill.name for outcome in every if outcome.skipped})
    if wrong:
        print(f"\nnot as expected: {', '.join(wrong)}")
        return WRONG
    if skipped:
        print(f"\nskipped, so nothing is known of them: {', '.join(skipped)}")
        return SKIPPED
    print("\nall as expected")
    return OK


if __name__ == "__main__":
    sys.exit(main())
