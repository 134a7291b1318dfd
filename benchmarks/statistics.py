"""Does every interval, test and verdict keep its promise? Simulated truths, judged as studies are.

python -m benchmarks.statistics                    all of them
python -m benchmarks.statistics intervals gates    these
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import NamedTuple

from benchmarks.bounds import Bounds

NAMES = (
    *("intervals", "drift", "gates", "baselines", "stops"),
    *("find_rate", "scaling", "comparisons", "replicas", "omission"),
)
"""Modules of benchmarks/simulating, each with `promises`."""
AT_ONCE = 2
"""Processes: the suite's own least machine has 2 cores."""
WORDS = {0: "holds", 1: "BROKEN", 3: "cannot be told"}


class Ended(NamedTuple):
    """One module's table, its exit code and how long it took."""

    table: str
    code: int
    took_s: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run them, each in a process of its own unless it is one; 0 where every promise holds, 3 where none is
    broken and one cannot be told."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.statistics", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--list", action="store_true", help="what each of them simulates")
    asked = parser.parse_args(argv)
    if unknown := [name for name in asked.names if name not in NAMES]:
        parser.error(f"{unknown[0]} simulates nothing here: give some of {', '.join(NAMES)}")
    names = asked.names or NAMES
    if asked.list:
        print("\n".join(f"{name:12} {title(name)}" for name in names))
        return 0
    return alone(names[0]) if len(names) == 1 else together(names)


def title(name: str) -> str:
    """The first line of a module's docstring."""
    return (import_module(f"benchmarks.simulating.{name}").__doc__ or "").partition("\n")[0]


def alone(name: str) -> int:
    """One of them, in this process; its exit code."""
    bounds = Bounds(title(name))
    import_module(f"benchmarks.simulating.{name}").promises(bounds)
    return bounds.exit_code()


def together(names: Sequence[str]) -> int:
    """All of them, AT_ONCE at a time; their tables in the order of the names, then one line of each."""
    codes, lines = list[int](), list[str]()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, ended in zip(names, pool.map(ended_of, names), strict=True):
            print(f"\n=== {name}: {ended.table}", flush=True)
            codes.append(ended.code)
            word = WORDS.get(ended.code, f"ended with exit code {ended.code}")
            lines.append(f"{name:12} {ended.took_s:7,.0f} s   {word}")
    print("\n" + "\n".join(lines))
    return 3 if set(codes) == {0, 3} or set(codes) == {3} else int(any(codes))


def ended_of(name: str) -> Ended:
    """One of them in a process of its own, once it has ended."""
    began = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.statistics", name]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return Ended(found.stdout, found.returncode, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
