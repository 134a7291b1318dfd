"""Our messages on Locust's own link, and their validation: anyone who can reach the port may send others."""

import logging
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from reports.fold.records import readable
from reports.histogram.codec import Room
from reports.ledger.ledger import Record
from reports.ledger.records import check_record
from reports.ledger.results import LATER_TEXTS, NUMBERS, OTHERS
from users.errors import ErrorKind

ASK, REPLY, HELLO = "swarm-ask", "swarm-reply", "swarm-hello"
"""Master asks, worker replies; a new worker says hello."""
PARTING = "swarm-parting"
"""A worker that got a signal has drained, reports its state, and sends no more."""
PARTING_S = 4.0
"""How long requests in flight may take to end when a study or a worker is stopped."""
RECORDS, PROGRESS = "swarm-records", "swarm-progress"
"""Worker to master: windows and health for the ledger, and the progress of a phase."""
PROGRESS_FIELDS = ("cell", "repeat", "phase", "ok", "failed")
logger = logging.getLogger("inferswarm")
Form = Callable[[Any], bool]
"""Whether a value is valid."""
KINDS_OF_ERRORS = frozenset(map(str, ErrorKind))
HISTOGRAM = "HIST"
"""The first characters of every encoded histogram."""
TRACE_ID = re.compile("[0-9a-f]{32}")
COLUMNS = {*NUMBERS, *OTHERS, *LATER_TEXTS}
DRAINED = (
    *("users", "users_ns", "finished", "abandoned", "other_phases"),
    *("sent", "phase_ns", "due", "dropped", "overslept"),
)
"""What a drained worker reports of each cell: `users_ns` is the time of all users together, from each one's
first start in the phase to its next one after it, or its last end; `other_phases` are requests of those that
a server may have counted in it.
"""


def is_text(value: Any) -> bool:
    """Whether it is text."""
    return isinstance(value, str)


def is_whole(value: Any) -> bool:
    """Whether it is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    """Whether it counts something."""
    return is_whole(value) and value >= 0


def is_number(value: Any) -> bool:
    """Whether it is a number that JSON has, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_finite(value: Any) -> bool:
    """Whether no number in it, however deep, is one that JSON lacks."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list) or all(map(is_finite, value))


def listed(form: Form) -> Form:
    """A list of values of that form."""
    return lambda value: isinstance(value, list) and all(map(form, value))


def named(form: Form) -> Form:
    """Values of that form by name."""
    return lambda value: (
        isinstance(value, dict) and all(is_text(name) and form(one) for name, one in value.items())
    )


def table(**fields: Form) -> Form:
    """A table in which each of the fields is there and of its form."""
    return lambda data: (
        isinstance(data, dict) and all(name in data and form(data[name]) for name, form in fields.items())
    )


def is_record(data: Any) -> bool:
    """Whether it is a record for the ledger, of a kind that workers send."""
    if not (is_tagged(data) and KINDS[data["kind"]](data) and is_finite(data)):
        return False
    try:
        # What reports refuse would make all of the ledger unreadable.
        check_record(data)
    except ValueError:
        return False
    return True


def are_readable(records: Sequence[Record]) -> bool:
    """Whether their histograms are such, and hold as many values as were counted."""
    try:
        readable(records, Room(0))
    except (ValueError, LookupError, TypeError):
        return False
    return True


def are_columns(value: Any) -> bool:
    """Whether it has every column of single Results, each as long as the others."""
    if not named(lambda values: isinstance(values, list))(value) or value.keys() != COLUMNS:
        return False
    if len({len(values) for values in value.values()}) != 1:
        return False
    if not all(map(is_text, value["request_class"])) or not all(map(is_trace_id, value["trace_id"])):
        return False
    # One value that an array does not take would leave columns of different lengths.
    return all(one is None or is_whole(one) for name in NUMBERS for one in value[name])


def is_trace_id(value: Any) -> bool:
    """Whether it is the id of a trace, or nothing."""
    return value == "" or (is_text(value) and TRACE_ID.fullmatch(value) is not None)


def is_reply(data: Any) -> bool:
    """Whether it answers one of our requests."""
    return table(seq=is_whole)(data) and is_text(data.get("error", "")) and is_finite(data)


def is_hello(data: Any) -> bool:
    """Whether it says where a worker is."""
    return isinstance(data, dict) and is_text(data.get("host", ""))


are_counts = named(is_whole)
KINDS: dict[str, Form] = {
    "window": table(
        ok=is_whole,
        failures=lambda value: are_counts(value) and value.keys() <= KINDS_OF_ERRORS,
        # What is in them is looked at where they are read.
        histograms=named(lambda text: is_text(text) and text.startswith(HISTOGRAM)),
    ),
    "health": table(cpu_pct=is_number, lag=is_text),
    "path": table(),
}
"""Of the records that workers send."""
OF_RUN: dict[str, Form] = {"cell": is_text, "repeat": is_whole, "phase": is_text}
is_tagged = table(**OF_RUN, kind=lambda kind: is_text(kind) and kind in KINDS, second=is_whole)
are_rows = table(**OF_RUN, columns=are_columns)
_are_records = table(
    records=lambda found: listed(is_record)(found) and are_readable(found), raw=listed(are_rows)
)
_are_traced = table(traced=listed(are_rows), untold=is_count)
is_progress = table(**OF_RUN, ok=is_count, failed=is_count)
is_parting = table(
    parts=listed(table(**dict.fromkeys(DRAINED, lambda value: value is None or is_number(value))))
)
is_question = table(op=is_text, seq=is_whole)


def are_records(data: Any) -> bool:
    """Whether it is records and single Results of a worker, and perhaps those with a traceparent."""
    return _are_records(data) and ("traced" not in data or _are_traced(data))


def careful(kind: str, form: Form, listener: Callable[..., None]) -> Callable[..., None]:
    """The listener, for messages of that form alone; that others are dropped is told once."""
    told: list[str] = []

    def listen(msg: Any, **about: Any) -> None:
        if form(msg.data):
            listener(msg=msg, **about)
        elif not told:
            told.append(msg.node_id)
            logger.warning(
                "a malformed %s message of %.60r: dropped; further ones are dropped without a message",
                kind,
                msg.node_id,
            )

    return listen
