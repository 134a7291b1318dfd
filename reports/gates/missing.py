"""What a threshold asks for and the study does not have: a cell of the baseline, one of a ratio, or any."""

from collections.abc import Iterator, Mapping

from reports.gates.claim import Claim, unknown
from reports.gates.own_bound import searched
from reports.gates.planned import Planned
from reports.gates.select import cells_of, unpaired
from reports.gates.source import Source
from reports.gates.thresholds import TEXTS, Threshold, fits

TOLD = 4
"""Values of the study in a sentence."""
MEND = "run it too, or choose the cells in the threshold"


def lost(threshold: Threshold, source: Source, baseline: Source | None) -> Iterator[Claim]:
    """What would pass unseen: a cell that only the baseline has, and one that has no other for its ratio.

    The rates of a search are what it found, so none of its cells is missing.
    """
    if searched(source):
        return
    if threshold.require.to_baseline and baseline is not None:
        for cell in _vanished(threshold, source.cells, baseline.cells):
            yield unknown(threshold, cell, f"the baseline has it, and the study has not: {MEND}")
    for over, under in unpaired(threshold, source.cells):
        there, absent = (over, under) if over in source.cells else (under, over)
        why = f"the study has {there}, and not {absent}: {MEND}"
        yield unknown(threshold, f"{over} / {under}", why)


def _vanished(threshold: Threshold, cells: Mapping[str, Planned], before: Mapping[str, Planned]) -> list[str]:
    """Cells of a baseline that it chooses, and that the study has not planned."""
    gone = {name: _as_planned(name, row, cells) for name, row in before.items() if name not in cells}
    return cells_of(threshold, gone)


def _as_planned(name: str, row: Planned, cells: Mapping[str, Planned]) -> Planned:
    """With what a baseline's rows do not tell, such as the link: as cells of its variant have it."""
    like = next((planned for other, planned in cells.items() if _variant(other) == _variant(name)), {})
    return {**like, **row}


def _variant(cell: str) -> list[str]:
    """What follows endpoint, batch and load in a cell's name."""
    return cell.split("/")[3:]


def unmet(threshold: Threshold, cells: Mapping[str, Planned]) -> list[str]:
    """What it asks for that no cell has, in words, and what they have: a larger study may have it."""
    return [
        f"{key} {' or '.join(absent)} ({_had(key, cells)})"
        for key, wanted in threshold.choice.items()
        if (absent := _absent(key, wanted, cells))
    ]


def _absent(key: str, wanted: str | frozenset[float], cells: Mapping[str, Planned]) -> list[str]:
    parts = [wanted] if isinstance(wanted, str) else [frozenset({number}) for number in sorted(wanted)]
    values = [planned.get(key) for planned in cells.values()]
    return [_said(key, part) for part in parts if not any(fits(value, part) for value in values)]


def chosen(threshold: Threshold, cells: Mapping[str, Planned]) -> str:
    """All that it asks for at once, in words."""
    told = [f"{key} {_said(key, value)}" for key, value in threshold.choice.items()]
    require = threshold.require
    ratio = [f"{require.over} and {require.under} ({_had('endpoint', cells)})"] if require.over else []
    return ", ".join([*ratio, *told]) or "any"


def _said(key: str, value: str | float | frozenset[float]) -> str:
    if isinstance(value, frozenset):
        return " or ".join(_said(key, number) for number in sorted(value))
    if isinstance(value, str):
        return value or "none"
    return f"{value:g} for all" if key in ("workers", "hosts") and not value else f"{value:g}"


def _had(key: str, cells: Mapping[str, Planned]) -> str:
    """What the cells have, of much only the first."""
    found = {planned.get(key) or ("" if key in TEXTS else 0) for planned in cells.values()}
    told = [_said(key, value) for value in sorted(found)]
    more = [f"{len(told) - TOLD:,} more"] if len(told) > TOLD else []
    return f"it has {', '.join([*told[:TOLD], *more]) or 'none'}"
