"""Our messages on Locust's own link, and what they look like: whoever reaches the port may send others."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

from reports.fold.records import readable
from reports.histogram.codec import Room
from reports.ledger.ledger import Record
from reports.ledger.records import check_record
from swarm.distributed.raw_results import NUMBERS, OTHERS
from users.errors import ErrorKind

ASK, REPLY, HELLO = "swarm-ask", "swarm-reply", "swarm-hello"
"""Master asks, worker replies; a new worker says hello."""
PARTING = "swarm-parting"
"""A worker that was signalled has drained, says with what, and sends no more."""
RECORDS, PROGRESS = "swarm-records", "swarm-progress"
"""Worker to master: windows and health for the ledger, and how far a phase has come."""
PROGRESS_FIELDS = ("cell", "repeat", "phase", "ok", "failed")
logger = logging.getLogger("inferswarm")
Form = Callable[[Any], bool]
KINDS_OF_ERRORS = frozenset(map(str, ErrorKind))
KINDS = ("window", "health", "path")
"""Of the records that workers send."""
HISTOGRAM = "HIST"
"""How every encoded histogram begins."""
COLUMNS = {*NUMBERS, *OTHERS}
DRAINED = ("users", "finished", "abandoned", "sent", "phase_ns", "due", "dropped", "overslept")
"""What a worker says that has drained."""


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


def are_counts(value: Any) -> bool:
    """Whether it counts something by name."""
    return isinstance(value, dict) and all(is_text(name) and is_whole(count) for name, count in value.items())


def is_finite(value: Any) -> bool:
    """Whether no number in it, however deep, is one that JSON lacks."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list) or all(map(is_finite, value))


def has(data: Any, **fields: Form) -> bool:
    """Whether it is a table in which each of the fields is there and of its form."""
    return isinstance(data, dict) and all(name in data and form(data[name]) for name, form in fields.items())


def are_histograms(value: Any) -> bool:
    """Whether it has encoded histograms by name; what is in them is looked at where they are read."""
    return isinstance(value, dict) and all(
        is_text(name) and is_text(text) and text.startswith(HISTOGRAM) for name, text in value.items()
    )


def is_of_run(data: Any) -> bool:
    """Whether it says to which phase of which run it belongs."""
    return has(data, cell=is_text, repeat=is_whole, phase=is_text)


def is_record(data: Any) -> bool:
    """Whether it is a record for the ledger, of a kind that workers send."""
    if not is_of_run(data) or not has(data, kind=lambda kind: kind in KINDS, second=is_whole):
        return False
    if data["kind"] == "window" and not has(
        data, ok=is_whole, failures=are_failures, histograms=are_histograms
    ):
        return False
    if not is_finite(data):
        return False
    if data["kind"] == "health" and not has(data, cpu_pct=is_number, lag=is_text):
        return False
    try:
        # What reports refuse would make all of the ledger unreadable.
        check_record(data)
    except ValueError:
        return False
    return True


def are_failures(value: Any) -> bool:
    """Whether it counts failures by kind."""
    return are_counts(value) and value.keys() <= KINDS_OF_ERRORS


def are_readable(records: Sequence[Record]) -> bool:
    """Whether their histograms are such, and hold as many values as were counted."""
    try:
        readable(records, Room(0))
    except (ValueError, LookupError, TypeError):
        return False
    return True


def are_rows(data: Any) -> bool:
    """Whether it holds single Results by columns, each as long as the others."""
    if not has(data, cell=is_text, repeat=is_whole, columns=lambda found: isinstance(found, dict)):
        return False
    columns = data["columns"]
    if columns.keys() != COLUMNS or not all(isinstance(values, list) for values in columns.values()):
        return False
    if len({len(values) for values in columns.values()}) != 1:
        return False
    # One value that an array does not take would leave columns of different lengths.
    return all(value is None or is_whole(value) for name in NUMBERS for value in columns[name])


def are_records(data: Any) -> bool:
    """Whether it is a message of records, and of single Results."""
    return has(
        data,
        records=lambda found: isinstance(found, list) and all(map(is_record, found)) and are_readable(found),
        raw=lambda found: isinstance(found, list) and all(map(are_rows, found)),
    )


def is_progress(data: Any) -> bool:
    """Whether it says how far a phase has come."""
    return is_of_run(data) and has(data, ok=is_count, failed=is_count)


def is_reply(data: Any) -> bool:
    """Whether it answers a question of ours."""
    return has(data, seq=is_whole) and is_text(data.get("error", "")) and is_finite(data)


def is_parting(data: Any) -> bool:
    """Whether it says with what a worker has drained."""
    return isinstance(data, dict) and all(
        name in data and (data[name] is None or is_number(data[name])) for name in DRAINED
    )


def is_hello(data: Any) -> bool:
    """Whether it says where a worker is."""
    return isinstance(data, dict) and is_text(data.get("host", ""))


def is_question(data: Any) -> bool:
    """Whether a worker can answer it."""
    return has(data, op=is_text, seq=is_whole)


def careful(kind: str, form: Form, listener: Callable[..., None]) -> Callable[..., None]:
    """The listener, for messages of that form alone; that others are dropped is told once."""
    told: list[str] = []

    def listen(msg: Any, **about: Any) -> None:
        if form(msg.data):
            listener(msg=msg, **about)
        elif not told:
            told.append(msg.node_id)
            logger.warning(
                "a malformed %s message of %.60r: dropped, as are all that follow, untold", kind, msg.node_id
            )

    return listen
