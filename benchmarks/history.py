"""Does `inferswarm history` find planted changes at their date, and none that is not there?

python -m benchmarks.history             all of it, some minutes
python -m benchmarks.history --seeds 20  fewer histories for a line
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.histories import Slower, Times, told, write_history
from benchmarks.simulating.truths import Floats
from reports.history.changes import ChangePoint, Course

SEEDS = 100
CELL, AT, BACK = 6, 120, 150
"""Which cell a change is planted in, at which study, and where it is mended."""
ABOUT = 15
"""Studies from its date within which a change counts as the planted one."""
FALSE, FOUND, NEAR = 5.0, 95.0, 90.0
"""Percent of histories: with a false change; where the planted one is found; where its date is off by one
study at most.
"""
WILD = 10.0
"""The same as FALSE, where noise grows on a day by itself."""
MOST_S = 30.0
"""Of processor time: for a thousand studies of fifty cells in three repeats, from files to page."""
QUIET = Times()


def step(share: float, back: int = QUIET.studies) -> Slower:
    """Slower by a share from AT until it is mended."""
    return lambda at: np.where((at >= AT) & (at < back), share, 0.0)


class PlantedChange(NamedTuple):
    """What is planted in CELL of which histories, at which studies a change must be told; promises."""

    name: str
    times: Times = QUIET
    slower: Slower | None = None
    dates: tuple[int, ...] = ()
    false: float | None = FALSE
    found: float | None = None
    near: float | None = None
    about: int = ABOUT


PLANTED = (
    PlantedChange("nothing"),
    PlantedChange("nothing, studies alike by 0.3", Times(alike=0.3)),
    PlantedChange("nothing, alike by 0.6", Times(alike=0.6)),
    PlantedChange("nothing, alike by 0.8", Times(alike=0.8), false=None),
    PlantedChange("nothing in 20 studies", Times(studies=20)),
    PlantedChange("nothing in 20 studies, alike by 0.6", Times(studies=20, alike=0.6), false=None),
    PlantedChange("nothing in 50 studies, alike by 0.6", Times(studies=50, alike=0.6), false=None),
    PlantedChange("8 % slower", slower=step(0.08), dates=(AT,), found=FOUND, near=NEAR),
    PlantedChange("3 % slower", slower=step(0.03), dates=(AT,), about=QUIET.studies),
    PlantedChange("20 % slower", slower=step(0.2), dates=(AT,), found=FOUND, near=FOUND),
    PlantedChange(
        "8 % slower, mended after 30 studies", slower=step(0.08, BACK), dates=(AT, BACK), found=FOUND
    ),
    PlantedChange("8 % slower, alike by 0.3", Times(alike=0.3), step(0.08), (AT,), found=FOUND),
    PlantedChange("8 % slower, alike by 0.6", Times(alike=0.6), step(0.08), (AT,), found=FOUND),
    PlantedChange("one study 30 % slower", slower=step(0.3, AT + 1)),
    PlantedChange("two studies 30 % slower", slower=step(0.3, AT + 2)),
    PlantedChange("nothing, noise with long tails", Times(cell=0.06, shape="long tails")),
    PlantedChange("nothing, noise with spikes", Times(cell=0.06, shape="spikes")),
    PlantedChange(
        "nothing, five times the noise in the second half", Times(day=0.005, cell=0.01, wilder=5), false=WILD
    ),
)
DRIFT = 0.2


def promises(bounds: Bounds, seeds: int) -> None:
    """Prints for each what was found, and what was told that is not there, in percent of histories."""
    for line, one in enumerate(PLANTED):
        histories = [
            told(one.times.draw(np.random.default_rng([line, seed]), slowed(one.slower)))
            for seed in range(seeds)
        ]
        false = share([is_false(history, one) for history in histories])
        bounds.at_most(f"{one.name}: a false change", false, one.false, "%")
        for date in one.dates:
            changes = [planted_at(history, date, one.about) for history in histories]
            seen = [change for change in changes if change]
            bounds.at_least(f"  at study {date}: found", share([bool(it) for it in changes]), one.found, "%")
            near = share([it is not None and abs(it.at - date) <= 1 for it in changes])
            bounds.at_least("    within 1 study", near, one.near, "%")
            bounds.beside(
                "    in the range that is told", share([it.first <= date <= it.last for it in seen]), "%"
            )
            covered = [(it.ratio.low or 0) <= true(it, one, date) <= (it.ratio.high or 0) for it in seen]
            bounds.beside("    CI of the ratio holds it", share(covered), "%")
    drifts(bounds, seeds)


def slowed(slower: Slower | None) -> dict[int, Slower]:
    """By cell."""
    return {CELL: slower} if slower else {}


def is_false(history: Sequence[Sequence[Course]], one: PlantedChange) -> bool:
    """Whether it tells a change or a drift that was not planted."""
    for measure in history:
        for cell, course in enumerate(measure):
            dates = one.dates if cell == CELL else ()
            if course.drift or any(
                all(abs(it.at - date) > one.about for date in dates) for it in course.changes
            ):
                return True
    return False


def planted_at(history: Sequence[Sequence[Course]], date: int, about: int) -> ChangePoint | None:
    """The surest change of the cell about a date, as the first screen has it."""
    changes = [it for measure in history for it in measure[CELL].changes if abs(it.at - date) <= about]
    return min(changes, key=lambda it: it.p, default=None)


def true(change: ChangePoint, one: PlantedChange, date: int) -> float:
    """The ratio that was planted, of a latency or of the rate as the change has it."""
    assert one.slower is not None
    before, after = one.slower(np.array([date - 1.0, float(date)]))
    latency = (1 + after) / (1 + before)
    return float(latency if (change.ratio.ratio > 1) == (latency > 1) else 1 / latency)


def drifts(bounds: Bounds, seeds: int) -> None:
    """20 % slower from the first study to the last, little by little."""
    slow: Slower = lambda at: DRIFT * at / QUIET.studies  # noqa: E731
    histories = [told(QUIET.draw(np.random.default_rng(seed), {CELL: slow})) for seed in range(seeds)]
    drifting = share([any(measure[CELL].drift for measure in history) for history in histories])
    bounds.at_least("a drift of 20 %: told as one", drifting, FOUND, "%")


def share(found: Sequence[bool]) -> float | None:
    """In percent; None of nothing."""
    return 100 * float(np.mean(found)) if found else None


def files(bounds: Bounds) -> None:
    """From files to page: the command finds what was planted, names what changed then, and is quick."""
    logs = QUIET.draw(np.random.default_rng(1), {CELL: step(0.08)})
    rows, _ = commanded(logs)
    changed = [row for row in rows if row["change_ratio"]]
    cell = {row["cell"] for row in changed}
    bounds.exactly("200 studies on disk, 8 % slower: cells with a change", len(cell), 1)
    named = {row["changed_then"].partition(";")[0] for row in changed}
    right = float(named == {"packages.onnxruntime"})
    bounds.exactly("  the package that changed then is named first", right, 1)
    _, took_s = commanded(Times(studies=1_000, cells=50).draw(np.random.default_rng(2), {CELL: step(0.08)}))
    bounds.at_most("1,000 studies of 50 cells, 3 repeats: the command, CPU", took_s, MOST_S, "s")


def commanded(logs: Mapping[str, Floats]) -> tuple[list[dict[str, str]], float]:
    """What history.csv has, and the command's processor time."""
    with TemporaryDirectory() as folder:
        write_history(Path(folder) / "results", logs, facts)
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = ["history", f"{folder}/results", "--out", f"{folder}/out", "--quiet"]
        subprocess.run([sys.executable, "-m", "reports", *words], check=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        took_s = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
        with (Path(folder) / "out" / "history.csv").open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines)), took_s


def facts(at: int) -> dict[str, object]:
    """A new commit for every study, a new kernel now and then, a new package when the change was planted."""
    packages = {"onnxruntime": "1.31.1" if at >= AT else "1.30.0", "numpy": "2.4.6"}
    return {"git_commit": f"{at:07x}", "system": f"Linux-6.{at // 40}", "packages": packages}


def main(argv: Sequence[str] | None = None) -> int:
    """Print every figure beside its bound; 0 where all hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"histories for a line (default: {SEEDS})")
    seeds = parser.parse_args(argv).seeds
    bounds = Bounds(f"200 studies of 20 cells in 3 repeats, 4 measures each; {seeds} histories a line")
    promises(bounds, seeds)
    files(bounds)
    return bounds.exit_code()


if __name__ == "__main__":
    sys.exit(main())
