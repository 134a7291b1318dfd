"""Every benchmark that has a bound, one after the other, and which of them broke.

python -m benchmarks                 all of them
python -m benchmarks tail accuracy   these
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

NAMES = (
    *("accuracy", "breakdown", "collector", "contention", "generator", "growth", "history", "interference"),
    *("interop", "planted", "rate", "scale", "sizes", "soak", "stall", "statistics", "strangers", "tail"),
    "turns",
)
QUICK = {"generator", "soak"}
"""Run with --quick: all their bounds, and a fifth of the time."""
WORDS = {0: "holds", 1: "BROKEN", 3: "cannot be told here"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run them; 0 where every bound holds."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)} (default: all)")
    names = parser.parse_args(argv).names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"{unknown[0]} is no benchmark with a bound: give some of {', '.join(NAMES)}")
    codes: dict[str, int] = {}
    lines = []
    for name in names:
        print(f"\n=== {name}", flush=True)
        began = time.monotonic()
        try:
            codes[name] = run(name)
        except KeyboardInterrupt:
            break
        word = WORDS.get(codes[name], f"ended with exit code {codes[name]}")
        lines.append(f"{name:12} {time.monotonic() - began:7,.0f} s   {word}")
    print("\n" + "\n".join([*lines, *(f"{name:12} not run" for name in names if name not in codes)]))
    return int(len(codes) < len(names) or any(codes.values()))


def run(name: str) -> int:
    """One, on this terminal; its exit code."""
    options = ["--quick"] if name in QUICK else []
    return subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options]).returncode


if __name__ == "__main__":
    sys.exit(main())
