"""Which cells a threshold is of, which two of them a ratio is of, and what they may be chosen by."""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from reports.backend_facts import model_of
from reports.fold.run_records import planned_of
from reports.gates.require import GateError, hint
from reports.gates.thresholds import TEXTS, Gates, Threshold
from reports.ledger.axes import of_trait
from reports.ledger.ledger import Record
from reports.ledger.records import LATER

SAME = ("batch", "load", "level", "arrivals", *of_trait("gated"))
"""What the two cells of a ratio of endpoints share."""
OF_ENDPOINT = ("endpoint", "backend", "protocol", "payload", *LATER)
FLOOR = "null"
"""What ledgers call the backend of a floor."""
TOLD = 12
"""Names in a message, which may be thousands."""
Planned = Mapping[str, Any]


def cells_of(threshold: Threshold, cells: Mapping[str, Planned]) -> list[str]:
    """The cells that a threshold chooses, in order; floors only where it names them."""
    return [
        name for name, planned in cells.items() if _meant(threshold, planned) and threshold.chooses(planned)
    ]


def _meant(threshold: Threshold, planned: Planned) -> bool:
    named = [str(threshold.choice.get(key, "")) for key in ("cell", "endpoint", "backend")]
    return not is_floor(planned) or any(
        "floor" in text or text == FLOOR for text in (*named, threshold.require.over)
    )


def is_floor(planned: Planned) -> bool:
    """Whether a cell is without a model, to show what the way to it takes."""
    return bool(planned["backend"] == FLOOR)


def pairs_of(threshold: Threshold, cells: Mapping[str, Planned]) -> list[tuple[str, str]]:
    """The cells of a ratio, over and under: those that it names, or alike in all but the endpoint.

    A * stands for the same text on both sides.
    """
    over, under = threshold.require.over, threshold.require.under
    places = {_place(planned): name for name, planned in cells.items()}
    found = []
    for name in cells_of(threshold, cells):
        endpoint = _counterpart(str(cells[name]["endpoint"]), over, under)
        place = _place({**cells[name], "endpoint": endpoint})
        other = places.get(place) or _counterpart(name, over, under)
        if other in cells:
            found.append((name, other))
    return found


def unpaired(threshold: Threshold, cells: Mapping[str, Planned]) -> list[tuple[str, str]]:
    """The cells of ratios, over and under, of which the study has one alone, though others of both endpoints.

    An endpoint that was not planned at all is not missing: `*-grpc / *-http` also finds backends that speak
    only one of them, and nobody took anything away from those.
    """
    over, under = threshold.require.over, threshold.require.under
    known = {str(planned["endpoint"]): planned for planned in cells.values()}
    pairs = pairs_of(threshold, cells)
    firsts, seconds = ({pair[side] for pair in pairs} for side in (0, 1))
    found = []
    for name, planned in cells.items():
        other = _other(name, planned, over, under)
        if other.partition("/")[0] in known and name not in firsts and cells_of(threshold, {name: planned}):
            found.append((name, other))
        other = _other(name, planned, under, over)
        first = known.get(other.partition("/")[0])
        # the choice is of the first cell, which would be like this one, of another endpoint
        like = {**planned, **{key: first.get(key) for key in OF_ENDPOINT}} if first else {}
        if first and name not in seconds and cells_of(threshold, {other: like}):
            found.append((other, name))
    return found


def _other(name: str, planned: Planned, this: str, that: str) -> str:
    """What the other cell would be called; empty where this one is not of this side."""
    endpoint = str(planned["endpoint"])
    if counterpart := _counterpart(endpoint, this, that):
        return f"{counterpart}{name.removeprefix(endpoint)}"
    return _counterpart(name, this, that)


def _place(planned: Planned) -> tuple[object, ...]:
    """Parts of a schedule that was split are alike in all but their shares, and what tells of those."""
    alike = {**planned, "level": None, "variant": None} if planned.get("split") else planned
    return (planned["endpoint"], *(alike.get(key) for key in SAME))


def _counterpart(name: str, over: str, under: str) -> str:
    """The other side's name; empty where this one is not of the first."""
    head, star, tail = over.partition("*")
    if not star:
        return under if name == over else ""
    between = name[len(head) : len(name) - len(tail)]
    return under.replace("*", between) if name == f"{head}{between}{tail}" else ""


def check_names(gates: Gates, cells: Mapping[str, Planned], endpoints: Collection[str] = ()) -> None:
    """GateError where a threshold names a text, such as an endpoint, that no cell of the study has.

    Numbers and cells' names may be of a larger size of the study; `endpoints` are known though not planned.
    """
    for threshold in gates.thresholds:
        for what, wanted, known in _named(threshold, cells, endpoints):
            # a cell without a link, say, is chosen by an empty text
            if not any(fnmatchcase(name, wanted) for name in ("", *known)):
                near = hint(wanted, known, f"it has {', '.join(known[:TOLD]) or 'none at all'}.")
                where = f"{gates.place}: threshold {threshold.number}"
                raise GateError(f"{where}: {what} {wanted!r}: the study has none such; {near}")


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


def planned_cell(entry: Record, header: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """From an entry of a plan, and its ledger's header, where there is one yet."""
    planned = planned_of(entry)
    return {**planned, **planned["topology"]._asdict(), "model": model_of(header, planned)}
