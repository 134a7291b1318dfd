"""Which cells a threshold is of, and which two of them a ratio is of."""

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from reports.gates.error import GateError
from reports.gates.source import Planned
from reports.gates.thresholds import TEXTS, Gates, Threshold
from reports.summary import FLOOR_SUFFIX

SAME = (
    *("batch", "load", "level", "channels", "client", "link", "congestion", "variant", "workers", "hosts"),
    "arrivals",
)
"""What the two cells of a ratio of endpoints share."""


def cells_of(threshold: Threshold, cells: Mapping[str, Planned]) -> list[str]:
    """The cells that a threshold chooses, in order; floors only where it names them."""
    return [
        name for name, planned in cells.items() if _meant(threshold, planned) and threshold.chooses(planned)
    ]


def _meant(threshold: Threshold, planned: Planned) -> bool:
    named = [str(threshold.choice.get(key, "")) for key in ("cell", "endpoint", "backend")]
    floor = str(planned["endpoint"]).endswith(FLOOR_SUFFIX)
    return not floor or any("floor" in text or text == "null" for text in named)


def pairs_of(threshold: Threshold, cells: Mapping[str, Planned]) -> list[tuple[str, str]]:
    """The cells of a ratio, over and under: alike in all but the endpoint, or the two that it names.

    A * stands for the same text on both sides.
    """
    over, under = threshold.require.over, threshold.require.under
    if over in cells and under in cells:
        return [(over, under)]
    places = {_place(planned): name for name, planned in cells.items()}
    return [
        (name, other)
        for name in cells_of(threshold, cells)
        if (endpoint := _counterpart(str(cells[name]["endpoint"]), over, under))
        and (other := places.get(_place({**cells[name], "endpoint": endpoint})))
    ]


def _place(planned: Planned) -> tuple[object, ...]:
    return (planned["endpoint"], *(planned.get(key) for key in SAME))


def _counterpart(endpoint: str, over: str, under: str) -> str:
    """The endpoint of the other side; empty where this one is not of the first."""
    if not fnmatchcase(endpoint, over):
        return ""
    head, star, tail = over.partition("*")
    return under.replace("*", endpoint[len(head) : len(endpoint) - len(tail)]) if star else under


def check_names(gates: Gates, cells: Mapping[str, Planned], endpoints: Collection[str] = ()) -> None:
    """GateError where a threshold names a text, such as an endpoint, that no cell of the study has.

    Numbers and cells' names may be of a larger size of the study; `endpoints` are known though not planned.
    """
    for threshold in gates.thresholds:
        for what, wanted, known in _named(threshold, cells, endpoints):
            if not any(fnmatchcase(name, wanted) for name in known):
                where = f"{gates.place}: threshold {threshold.number}" if threshold.number else gates.place
                near = get_close_matches(wanted, known, 1)
                hint = f"did you mean {near[0]}" if near else "the study's are"
                rest = "" if near else f" {', '.join(known) or 'none'}"
                raise GateError(f"{where}: {what} {wanted!r}: the study has none; {hint}{rest}.")


def _named(
    threshold: Threshold, cells: Mapping[str, Planned], endpoints: Collection[str]
) -> Iterator[tuple[str, str, list[str]]]:
    for key in TEXTS:
        wanted = threshold.choice.get(key)
        if key != "cell" and isinstance(wanted, str):
            more = endpoints if key == "endpoint" else ()
            yield key, wanted, _values(key, cells, more)
    for side in (threshold.require.over, threshold.require.under):
        if threshold.require.over:
            yield "require", side, [*_values("endpoint", cells, endpoints), *cells]


def _values(key: str, cells: Mapping[str, Planned], more: Collection[str]) -> list[str]:
    found = [str(planned.get(key) or "") for planned in cells.values()]
    return [value for value in dict.fromkeys([*found, *more]) if value]
