"""The bound on failures that every study has without declaring it."""

from collections.abc import Iterator

from reports.gates.absolute import judge_absolute
from reports.gates.claim import Claim
from reports.gates.columns import FAILURE_RATIO
from reports.gates.counting import Counting
from reports.gates.require import Require
from reports.gates.select import cells_of, is_floor, pairs_of
from reports.gates.source import Source
from reports.gates.thresholds import WARN, Gates, Threshold

OPTION = "--max-failure-ratio"


def own_bound(gates: Gates, source: Source, counting: Counting) -> Iterator[Claim]:
    """Of the cells that no threshold on failures may fail, and of floors where a threshold names them.

    Without a model the client is easily the limit, so a floor that nobody asks for decides nothing.
    """
    if searched(source):
        return
    serious = [one for one in gates.thresholds if one.severity != WARN]
    on_failures = [one for one in serious if one.require.column == FAILURE_RATIO]
    covered = {cell for one in on_failures for cell in cells_of(one, source.cells)}
    named = {cell for one in serious for cell in _named(one, source)}
    bound = _bound(source)
    for cell, planned in source.cells.items():
        if cell not in covered and (cell in named or not is_floor(planned)):
            yield judge_absolute(bound, cell, source, counting)


def searched(source: Source) -> bool:
    """Whether all are searches for a rate: they overload the server on purpose, at rates that they find."""
    return all((side.header.get("options") or {}).get("find_rate") for side in source.sides)


def _named(threshold: Threshold, source: Source) -> list[str]:
    if threshold.require.over:
        return [cell for pair in pairs_of(threshold, source.cells) for cell in pair]
    return cells_of(threshold, source.cells)


def _bound(source: Source) -> Threshold:
    """The least that any of the studies allows."""
    told = [side.header.get("options") or {} for side in source.sides]
    least = min((float(one.get("max_failure_ratio") or 0) for one in told), default=0.0)
    require = Require(f"{FAILURE_RATIO} <= {least:g}", FAILURE_RATIO, at_most=True, bound=least)
    return Threshold(0, require, name=OPTION)
