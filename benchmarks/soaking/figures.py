"""A soak's figures by their bounds, and the same as tables in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.bounds import Bounds
from benchmarks.soaking.judging import (
    BROKEN,
    HOLDS,
    LONG_MIN,
    STEP_MB,
    Interval,
    Point,
    growth,
    ratio,
    rise,
    rises,
    sameness,
    slope,
    stays,
)
from benchmarks.soaking.measured import Cell, Soak
from benchmarks.soaking.validity import Validity, judge_code, judge_doubts
from benchmarks.soaking.watching import Look, Size, Track

MOST_MB_PER_MIN = 1.0
MB = 1e6
PROCESSES_NEEDED = {"master": 1, "worker": 2}
"""How many of each must be there, the same ones, from the first judged look to the last."""
LEAST_SHARE = 0.9
"""Of a cell's judged time: a process that was there for less of it came or went in between."""
PERCENTILES = ("p50", "p95", "p99")
PROCESSES = """\
| cell | process | RSS, MB | MB/min (95 %) | rise, MB | PSS, MB/min (95 %) | descriptors | threads | CPU |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
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
    risen: float | None
    """Of its RSS, in MB."""
    pss: Interval | None
    kept: str
    """Whether its descriptors stay."""

    @property
    def minutes(self) -> float:
        """How long it was looked at."""
        return (self.looks[-1].at_s - self.looks[0].at_s) / 60

    @property
    def row(self) -> str:
        """As a row of a table, without its cell."""
        first, last = self.looks[0], self.looks[-1]
        cores = (last.cpu_s - first.cpu_s) / (last.at_s - first.at_s)
        fds = [look.fds for look in self.looks]
        memory = f"{last.rss_bytes / MB:.1f} | {told(self.rss)} | {in_mb(self.risen)} | {told(self.pss)}"
        return (
            f"{self.track.role} | {memory} | {min(fds)} to {max(fds)} | {last.threads} | {100 * cores:.1f}% |"
        )


def judge(
    bounds: Bounds,
    soak: Soak,
    validity: Validity,
    tracks: Iterable[Track],
    sizes: Mapping[str, Sequence[Size]],
    skipped_s: float,
    quick: bool,
) -> str:
    """Every figure by its bound; the tables of processes and of minutes in Markdown."""
    if not soak.cells or soak.status != "complete":
        bounds.unread("a study that came to its end")
    for name in soak.unmeasured:
        bounds.unread(f"{name}: its measure phase")
    judge_code(bounds, validity)
    rows, minutes, ordered = [], [], sorted(tracks, key=lambda track: track.role)
    for cell in soak.cells:
        counts(bounds, cell)
        fates = [fate for track in ordered for fate in fates_of(track, cell, skipped_s)]
        judge_doubts(bounds, validity.doubts.get(cell.name, ()), quick)
        all_there(bounds, ordered, fates, cell)
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

    rss, pss = points("rss_bytes", MB), points("pss_bytes", MB)
    yield Fate(track, looks, slope(rss), rise(rss), slope(pss), stays(points("fds")))


def all_there(bounds: Bounds, tracks: Iterable[Track], fates: Iterable[Fate], cell: Cell) -> None:
    """Whether those that were seen of each kind are as many as there must be, and lived through it."""
    seen = Counter(
        track.kind
        for track in tracks
        if any(cell.began_s <= look.at_s <= cell.ended_s for look in track.looks)
    )
    lived = Counter(fate.track.kind for fate in fates)
    for kind, count in PROCESSES_NEEDED.items():
        verdict = HOLDS if lived[kind] == seen[kind] == count else BROKEN
        bounds.verdict(
            f"  {kind}: throughout", f"{lived[kind]} of {seen[kind]}", f"{count} of {count}", verdict
        )


def memory(bounds: Bounds, fates: Sequence[Fate]) -> None:
    """The bounds of each of our processes; of a short time the slope is shown, and the rise alone judged."""
    for fate in fates:
        if not fate.track.ours:
            continue
        role, most, long = fate.track.role, MOST_MB_PER_MIN, fate.minutes >= LONG_MIN
        bound, grown = (f"< {most:g}", growth(fate.rss, most)) if long else ("", HOLDS)
        bounds.verdict(f"  {role}: RSS, MB/min", told(fate.rss), bound, grown)
        most_mb = most * fate.minutes + (0 if long else STEP_MB)
        risen = rises(fate.risen, fate.minutes, most)
        bounds.verdict(f"  {role}: RSS, rise in MB", in_mb(fate.risen), f"< {most_mb:.3g}", risen)
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


def in_mb(found: float | None) -> str:
    """`0.25`."""
    return "too short" if found is None else f"{found:.2f}"


def told(found: Interval | None) -> str:
    """`0.12 (0.08 to 0.2)`."""
    if found is None:
        return "too short"
    return f"{found.estimate:.3f} ({found.low:.3f} to {found.high:.3f})"
