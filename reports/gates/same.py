"""Whether a study and its baseline met the same conditions, so that the server alone can tell them apart."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from reports.compare.side import Side
from reports.compare.stated import stated
from reports.gates.source import Source

MUST = (
    *("images.*", "endpoints.*.model", "endpoints.*.weights", "link", "link.*", "host", "host.*"),
    *("cpu", "cpu.*", "cores", "gpus", "system", "tcp_congestion_control"),
    *("options.client", "options.channels", "options.arrivals", "options.max_in_flight", "options.trace"),
)
"""What a study states, by dotted names, that must be as in its baseline."""
NEARLY = {"workers": 0.0, "hosts": 0.0, "request_bytes": 0.02}
"""By what part columns may differ: a request's size shows another image size or encoding, and JPEGs vary."""
TOLD = 3


def what_differs(now: Source, then: Source, cell: str, may_differ: Sequence[str]) -> str:
    """What does not match of a cell that both have, in words; empty where all does that must."""
    found = [
        f"{what} ({ours} here, {theirs} in the baseline)"
        for what, ours, theirs in _differences(now, then, cell)
        if not any(fnmatchcase(what, name) for name in may_differ)
    ]
    more = f" and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return "; ".join(found[:TOLD]) + more


def _differences(now: Source, then: Source, cell: str) -> Iterator[tuple[str, str, str]]:
    sides = [_sides_with(source, cell) for source in (now, then)]
    endpoint = now.runs[cell][0].row.endpoint
    facts = [[stated(side, [endpoint]) for side in some] for some in sides]
    for what in dict.fromkeys(name for some in facts for fact in some for name in fact):
        if any(fnmatchcase(what, name) for name in MUST):
            ours, theirs = (
                " or ".join(dict.fromkeys(f.get(what, "not stated") for f in some)) for some in facts
            )
            if ours != theirs:
                yield what, ours, theirs
    for column, nearly in NEARLY.items():
        here, there = (_largest(source, cell, column) for source in (now, then))
        if here and there and abs(here / there - 1) > nearly:
            yield column, f"{here:,.0f}", f"{there:,.0f}"


def _largest(source: Source, cell: str, column: str) -> float:
    """Of a column over all runs of a cell, 0 where it is not known."""
    return max(run.row.numbers.get(column, 0.0) for run in source.runs[cell])


def _sides_with(source: Source, cell: str) -> list[Side]:
    return [source.sides[number] for number in dict.fromkeys(run.study for run in source.runs[cell])]
