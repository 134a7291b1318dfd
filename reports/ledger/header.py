"""The shape of a ledger's header: which fields it must have, and what each is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.ledger.ledger import LedgerError, Record

REQUIRED = ("study", "title", "size", "started_utc", "plan")
TEXT, OBJECT, OBJECTS, LIST = "a text", "an object", "an object of objects", "a list of objects"
SHAPES = {
    **dict.fromkeys(("study", "title", "size", "started_utc"), TEXT),
    **dict.fromkeys(("options", "fingerprint", "images"), OBJECT),
    "endpoints": OBJECTS,
    **dict.fromkeys(("plan", "links", "hosts"), LIST),
}


def check_header(header: Record, path: Path | str) -> None:
    """LedgerError where a required field is missing, or one that is there is not what it must be.

    Those that are not required may be null, too.
    """
    if missing := [name for name in REQUIRED if name not in header]:
        raise LedgerError(f"{path}: the header lacks {', '.join(missing)}: run the study again.")
    for name, shape in SHAPES.items():
        value = header.get(name)
        if not (_is(value, shape) or (value is None and name not in REQUIRED)):
            raise LedgerError(
                f"{path}: the header's {name} is not {shape}: mend line 1, or run the study again."
            )


def _is(value: Any, shape: str) -> bool:
    if shape == TEXT:
        return isinstance(value, str)
    if shape == LIST:
        return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)
    whole = isinstance(value, Mapping)
    return whole and (shape == OBJECT or all(isinstance(one, Mapping) for one in value.values()))
