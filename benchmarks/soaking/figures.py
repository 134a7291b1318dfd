"""A soak's figures by their bounds, and the same as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.bounds import Bounds
from benchmarks.soaking.judging import Interval, Point, growth, ratio, sameness, slope, stays
from benchmarks.soaking.measured import Cell, Soak
from benchmarks.soaking.watching import Look, Size, Track

MOST_MB_PER_MIN = 1.0
MB = 1e6
LEAST_SHARE = 0.9
"""Of a cell's judged time: a process that was there for less of it came or went in between."""
PERCENTILES = ("p50", "p95", "p99")
PROCESSES = """\
| cell | process | RSS, MB | RSS, MB/min (95 %) | PSS, MB/min (95 %) | descriptors | threads | CPU |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |
"""
MINUTES = """\
| cell | figure | first minutes, ms | last minutes, ms | last / first (95 %) | |
| --- | --- | ---: | ---: | ---: | --- |
"""


@dataclass(frozen=True)
class Fate:
    """What became of one process during one cell; memory in MB, slopes in MB a minute."""

    track: Track
    looks: Sequence[Look]
    rss: Interval | None
    pss: Interval | None
    kept: str
    """Whether its descriptors stay."""

    @property
    def row(self) -> str:
        """As a row of a table, without its cell."""
        first, last = self.looks[0], self.looks[-1]
        cores = (last.cpu_s - first.cpu_s) / (last.at_s - first.at_s)
        fds = [look.fds for look in self.looks]
        memory = f"{last.rss_bytes / MB:.1f} | {told(self.rss)} | {told(self.pss)}"
        return (
            f"{self.track.role} | {memory} | {min(fds)} to {max(fds)} | {last.threads} | {100 * cores:.1f}% |"
        )


def judge(
    bounds: Bounds,
    soak: Soak,
    tracks: Iterable[Track],
    sizes: Mapping[str, Sequence[Size]],
    skipped_s: float,
    quick: bool,
) -> str:
    """Every figure by its bound; the tables of processes and of minutes in Markdown."""
    if not soak.cells or soak.status != "complete":
        bounds.unread("a study that came to its end")
    rows, minutes, ordered = [], [], sorted(tracks, key=lambda track: track.role)
    for cell in soak.cells:
        counts(bounds, cell)
        fates = [fate for track in ordered for fate in fates_of(track, cell, skipped_s)]
        memory(bounds, fates)
        rows += [f"| {cell.name} | {fate.row}" for fate in fates]
        if not quick:
            minutes += [f"| {cell.name} | {row}" for row in percentiles(bounds, cell, skipped_s)]
    for name, seen in sizes.items():
        if name in ("ledger.jsonl", "results.parquet"):
            bounds.beside(f"{name} at its end", seen[-1].bytes / MB, "MB")
    shown = PROCESSES + "\n".join(rows)
    return f"{shown}\n\n{MINUTES}" + "\n".join(minutes) if minutes else shown


def counts(bounds: Bounds, cell: Cell) -> None:
    """What was sent, what was lost, and what the ledger takes."""
    bounds.beside(f"{cell.name}: requests", cell.ok)
    bounds.exactly("  failed, abandoned, dropped", cell.lost, 0)
    bounds.beside("  ledger", cell.ledger_bytes / MB / cell.minutes, "MB/min")


def fates_of(track: Track, cell: Cell, skipped_s: float) -> Iterator[Fate]:
    """What became of a process that lived through the judged time of a cell."""
    begin_s = cell.began_s + skipped_s
    looks = [look for look in track.looks if begin_s <= look.at_s <= cell.ended_s]
    if len(looks) < 2 or looks[-1].at_s - looks[0].at_s < LEAST_SHARE * (cell.ended_s - begin_s):
        return

    def points(name: str, unit: float = 1.0) -> list[Point]:
        return [Point((look.at_s - begin_s) / 60, getattr(look, name) / unit) for look in looks]

    rss, pss = slope(points("rss_bytes", MB)), slope(points("pss_bytes", MB))
    yield Fate(track, looks, rss, pss, stays(points("fds")))


def memory(bounds: Bounds, fates: Sequence[Fate]) -> None:
    """The bounds of each of our processes."""
    ours = [fate for fate in fates if fate.track.ours]
    if {"master", "worker"} - {fate.track.kind for fate in ours}:
        bounds.unread("  a master and workers that lived through it")
    for fate in ours:
        role, grown = fate.track.role, growth(fate.rss, MOST_MB_PER_MIN)
        bounds.verdict(f"  {role}: RSS, MB/min", told(fate.rss), f"< {MOST_MB_PER_MIN:g}", grown)
        fds = [look.fds for look in fate.looks]
        bounds.verdict(f"  {role}: descriptors", f"{fds[0]} to {fds[-1]}", "stay", fate.kept)


def percentiles(bounds: Bounds, cell: Cell, skipped_s: float) -> list[str]:
    """The last third of the minutes beside the first; rows of a table, without the cell."""
    minutes = cell.by_minute(skipped_s)
    third, rows = len(minutes) // 3, []
    for index, name in enumerate(PERCENTILES):
        values = [minute[index] for minute in minutes]
        first, last = values[:third], values[len(values) - third :]
        found = ratio(first, last)
        verdict = sameness(found)
        said = told(found) if found else f"{len(minutes)} minutes"
        bounds.verdict(f"  {name}: last minutes / first", said, "1, or ±10 %", verdict)
        rows.append(f"{name} | {listed(first)} | {listed(last)} | {told(found)} | {verdict} |")
    return rows


def listed(values: Iterable[float]) -> str:
    """`1.9, 2.1`."""
    return ", ".join(f"{value:.3g}" for value in values)


def told(found: Interval | None) -> str:
    """`0.12 (0.08 to 0.2)`."""
    if found is None:
        return "too short"
    return f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})"
