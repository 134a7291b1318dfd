"""Whether a study and its baseline met the same conditions, so that the server alone can tell them apart."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from reports.compare.side import Side
from reports.compare.stated import stated
from reports.gates.source import Source

MUST = (
    *("images.*", "endpoints.*.model", "endpoints.*.weights", "link", "link.*", "host", "host.*"),
    *("cpu", "cores", "gpus", "system", "tcp_congestion_control"),
    *("options.client", "options.channels", "options.arrivals", "options.max_in_flight", "options.trace"),
)
"""What a study states, by dotted names, that must be as in its baseline."""
REQUEST_BYTES, NEARLY = "request_bytes", 0.02
"""The size of a request for each image shows another image size or encoding; JPEGs may vary by so much."""
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
    sizes = [
        [size / run.row.batch for run in source.runs[cell] if (size := run.row.numbers.get(REQUEST_BYTES))]
        for source in (now, then)
    ]
    if all(sizes):
        here, there = (max(some) for some in sizes)
        if abs(here / there - 1) > NEARLY:
            yield REQUEST_BYTES, f"{here:,.0f} bytes an image", f"{there:,.0f}"


def _sides_with(source: Source, cell: str) -> list[Side]:
    return [source.sides[number] for number in dict.fromkeys(run.study for run in source.runs[cell])]
