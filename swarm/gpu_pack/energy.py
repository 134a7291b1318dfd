"""Energy, clocks and memory of a GPU in each cell, read off what studies left."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean

HEADS = ("step", "cell", "images/s", "p50 ms", "util %", "W", "J/image", "readings", "SM MHz", "memory GB")
NONE = "no GPU reported its power, clock or memory"


def rows(step: str, folder: Path) -> Iterator[tuple[str, ...]]:
    """One row for each cell and repeat of a study in `folder` whose GPU told anything."""
    clocks = clocks_of(read(folder / "timeline.csv"))
    for cell in read(folder / "cells.csv"):
        told = (
            short(cell["gpu_util_pct"]),
            short(cell["gpu_power_w"]),
            short(cell["joules_per_image"]),
            *clocks.get((cell["cell"], cell["repeat"]), ("", "")),
            scaled(cell["gpu_memory_bytes"], 1e-9),
        )
        if any(told):
            yield (step, cell["cell"], short(cell["images_per_s"]), short(cell["latency_p50_ms"]), *told)


def clocks_of(timeline: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """How many readings each run's measure phase has, and their mean SM clock in MHz."""
    found = defaultdict[tuple[str, str], list[float]](list)
    for second in timeline:
        if second["phase"] == "measure" and second["gpu_sm_clock_mhz"]:
            found[second["cell"], second["repeat"]].append(float(second["gpu_sm_clock_mhz"]))
    return {run: (str(len(values)), f"{fmean(values):.0f}") for run, values in found.items()}


def short(text: str) -> str:
    """A number with three decimals at most; nothing for none."""
    return f"{round(float(text), 3):g}" if text else ""


def scaled(text: str, factor: float) -> str:
    """A number in another unit; nothing for none."""
    return f"{float(text) * factor:.2f}" if text else ""


def read(file: Path) -> list[dict[str, str]]:
    """A table's rows; none where there is no file."""
    if not file.exists():
        return []
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


def table(lines: Iterable[tuple[str, ...]]) -> str:
    """All rows as text, in columns; a sentence where there are none."""
    found = [HEADS, *lines]
    if not found[1:]:
        return NONE
    widths = [max(map(len, column)) for column in zip(*found, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in found
    )
