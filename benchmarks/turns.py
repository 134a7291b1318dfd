"""Do gates tell right from wrong on real servers? A server against itself, a slower one, a hogged client.

python -m benchmarks.turns [--turns 10] [--keep DIR]     about 20 minutes with 10 turns

In every turn a study of the same emulated model is made four times: of a server, of another that is alike, of
one that computes 15 % longer, and of the first again while other processes burn the client's cores.
"""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.drive import LOCUST
from benchmarks.planting.processes import BURN, address_of, process, servers
from benchmarks.planting.setup import Setup, emulated, hogs
from tests.locustfiles.console import ONCE, ROOT

TURNS = 10
STUDY_S = 120
THRESHOLDS = ROOT / "examples/ci/regression.toml"
CELLS = ("emulated-http", "emulated-grpc")
AMOUNTS = ("--cells", "emulated-*/b1/c1", "--iterations", "400", "--seconds", "5", "--warm-up", "5", *ONCE)
MS, SLOWER = 10.0, 1.15
PASS, FAIL, INCONCLUSIVE = 0, 1, 3


@dataclass(frozen=True)
class Side:
    """What is set beside the first: its name, the model's milliseconds, what the gate must say of it."""

    name: str
    ms: float
    code: int
    hogs: int = 0

    @property
    def setup(self) -> Setup:
        """Its server, as benchmarks/planting starts it."""
        return Setup(self.name, "", CELLS[0], emulated(f"{self.ms:g}+0"))


FIRST = Side("first", MS, PASS)
OTHERS = (
    Side("alike", MS, PASS),
    Side("slower", MS * SLOWER, FAIL),
    Side("hogged", MS, INCONCLUSIVE, hogs=hogs()),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Make all turns, then judge each of the others by the first; 0 where every verdict is right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="studies of each (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the studies are left")
    options = parser.parse_args(argv)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        ready = {
            side.name: stack.enter_context(servers(side.setup, "127.0.0.1")) for side in (FIRST, *OTHERS[:2])
        }
        for turn in range(options.turns):
            measure(folder, ready, turn)
            print(f"turn {turn + 1} of {options.turns}", flush=True)
        wrong = [side.name for side in OTHERS if judged(folder, side) != side.code]
    print(f"\n{'every verdict is right' if not wrong else 'wrong: ' + ', '.join(wrong)}")
    return 1 if wrong else 0


def measure(folder: Path, ready: Mapping[str, Any], turn: int) -> None:
    """One study of each; the first comes first in every other turn, and last in those between."""
    sides = (FIRST, *OTHERS)
    for side in sides if turn % 2 == 0 else reversed(sides):
        with ExitStack() as stack:
            for _ in range(side.hogs):
                stack.enter_context(process(sys.executable, "-c", BURN))
            study(folder / side.name, ready.get(side.name, ready[FIRST.name]), side)


def study(folder: Path, ready: Mapping[str, Any], side: Side) -> None:
    """One headless study, whatever its own exit code says: the gate sees what became of it."""
    targets = []
    for endpoint in CELLS:
        place = Setup(side.name, "", endpoint, ())
        targets += [f"--{endpoint}-url", address_of(place, dict(ready), "127.0.0.1")]
    command = [LOCUST, "-f", "locustfiles/step7.py", "--headless", *targets, *AMOUNTS]
    folder.mkdir(exist_ok=True)
    with (folder / "study.log").open("a") as log:
        subprocess.run(
            [*command, "--results-dir", str(folder)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, timeout=STUDY_S, check=False,
        )  # fmt: skip


def judged(folder: Path, side: Side) -> int:
    """The gate's exit code, with every verdict printed."""
    places = {name: sorted(map(str, (folder / name).glob("*/"))) for name in (FIRST.name, side.name)}
    command = [sys.executable, "-m", "reports", "gate", *places[side.name], "--baseline", *places[FIRST.name]]
    done = subprocess.run(
        [*command, "--thresholds", str(THRESHOLDS), "--out", str(folder / side.name), "--quiet"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(f"\n{side.name}: exit code {done.returncode}, and {side.code} is right\n{done.stderr}".rstrip())
    kept = folder / side.name / "gates.json"
    for verdict in json.loads(kept.read_text())["verdicts"] if kept.is_file() else []:
        print(f"  {verdict['outcome']:<13}{verdict['sentence']}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
