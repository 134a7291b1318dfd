"""Ledgers in which one thing is wrong: in a field, among the lines, or in the bytes."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.reports.builder import Book
from tests.reports.damage import STRANGE, told
from tests.reports.example import MS, lognormal
from tests.reports.lines import Record, encoded, triton

Place = tuple[int, tuple[Any, ...]]
"""Which record, and the way to something in it."""

DEEP = json.loads("[" * 60 + "]" * 60)
STRANGER = (
    *STRANGE, DEEP, "x" * 100_000, "\x1b[31m", "1e999", -0.0, 2**64, [[1]], {"": ""}, ["w0", 1], "closed",
    False, encoded([MS] * 3), encoded([]), "HISTFAAAAB", 20, 21, 40,
)  # fmt: skip
FOREIGN = (
    b"\n", b"null\n", b"[]\n", b'"kind"\n', b"{}\n", b'{"kind":7}\n', b'{"kind":"header","version":1}\n',
    b'{"kind":"window"}\n', b'{"kind":"window","cell":"onnx-http/b1/c1","repeat":1}\n', b"{" * 5_000 + b"\n",
    b'{"kind":"footer"}\n', b'{"kind":"cold"}\n', b'{"kind":"plan","runs":7}\n', b"\xff\xfe\n", b"NaN\n",
    b'{"kind":"plan","runs":[{}]}\n', b'{"kind":"operators"}\n', b'{"kind":"run","cell":[],"repeat":1}\n',
)  # fmt: skip


def tiny() -> Book:
    """One closed and one open run with every kind of record that a study writes."""
    book = Book(
        options={"command": "locust", "link_mbit": 1000, "usd_per_hour": 0.85},
        links=[{"name": "lan", "one_way_ms": 1.0, "mbit_per_s": 1000}],
        hosts=[{"name": "here", "kind": "local", "workers": 1, "facts": {"cores": 2, "clock_offset_ns": 9}}],
    )
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.cold("onnx-http", 1, 90 * MS, 9 * MS)
    values = {"w0": lognormal(1, 9.0, 40)}
    told(book, book.add("onnx-http", 1, 1, values, counters=triton(40, 1, 7 * MS)))
    book.add_open("onnx-http", 20.0, values, failures={"timeout": 2}, dropped=1)
    book.plan_later()
    book.footer()
    return book


def lines_of(records: list[Record]) -> list[bytes]:
    """As a ledger has them; NaN and infinities, which no writer writes, too."""
    return [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]


def places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to everything that lies in something."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield (*way, key)
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key], (*way, key))


BOOK = tiny()
RECORDS: list[Record] = [BOOK.header, *BOOK.records]
LINES = lines_of(RECORDS)
WHOLE = b"".join(LINES)
PLACES: list[Place] = [(at, way) for at, record in enumerate(RECORDS) for way in places(record)]


def with_change(place: Place, how: str, value: Any) -> bytes:
    """With one thing dropped, renamed, doubled or replaced."""
    at, way = place
    record = deepcopy(RECORDS[at])
    tree: Any = record
    for key in way[:-1]:
        tree = tree[key]
    if how == "dropped":
        del tree[way[-1]]
    elif how == "renamed" and isinstance(tree, dict):
        tree[f"{way[-1]}s"] = tree.pop(way[-1])
    elif how == "doubled":
        tree[way[-1]] = [tree[way[-1]]] * 2
    else:
        tree[way[-1]] = value
    return b"".join([*LINES[:at], *lines_of([record]), *LINES[at + 1 :]])


def with_line(at: int, to: int, how: str, foreign: bytes) -> bytes:
    """With one line lost, moved, doubled, cut or a foreign one among them."""
    lines = [*LINES]
    if how == "foreign":
        lines.insert(to, foreign)
    elif how == "cut":
        lines[at] = lines[at][: len(lines[at]) * to // len(lines)]
    else:
        line = lines[at] if how == "doubled" else lines.pop(at)
        if how != "lost":
            lines.insert(to, line)
    return b"".join(lines)


def with_bytes(at: int, lost: int, put: bytes) -> bytes:
    """With some bytes lost, or others in their place."""
    return WHOLE[:at] + put + WHOLE[at + lost :]


HOWS = st.sampled_from(("dropped", "renamed", "doubled", "replaced", "replaced", "replaced", "replaced"))
NUMBER = st.sampled_from([*range(1, len(LINES)), 0])
IN_FIELDS = st.builds(with_change, st.sampled_from(PLACES), HOWS, st.sampled_from(STRANGER))
IN_LINES = st.builds(
    with_line,
    NUMBER,
    NUMBER,
    st.sampled_from(("lost", "moved", "doubled", "cut", "cut", "foreign", "foreign")),
    st.sampled_from(FOREIGN),
)
PLACE = st.integers(len(LINES[0]), len(WHOLE) - 1) | st.integers(0, len(LINES[0]))
IN_BYTES = st.builds(with_bytes, PLACE, st.integers(0, 40), st.binary(max_size=4) | st.sampled_from(FOREIGN))
BAD_LEDGERS = (IN_FIELDS | IN_FIELDS | IN_FIELDS | IN_LINES | IN_BYTES).filter(WHOLE.__ne__)
