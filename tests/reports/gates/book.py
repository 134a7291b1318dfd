"""Made-up studies to judge: several cells, many repeats, and as many seconds as a test wants."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from reports.gates.baseline import load_baseline
from reports.gates.judge import judge
from reports.gates.source import GateSource, source_of
from reports.gates.thresholds import parse_gates
from reports.gates.verdict import Verdict
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.lines import FIRST_NS, FIRST_SECOND, Record, drained_line, window

MS = 1_000_000
NOISE = (1.0, 0.99, 1.01, 1.005, 0.995)
"""Of repeats: a bit more than a percent."""
SPREAD = (0.8, 0.9, 1.0, 1.1, 1.2)
"""Of requests within a second."""


FIRST_MADE = datetime(2026, 11, 21, 11, tzinfo=UTC)
_made = itertools.count()


def a_book(**header: Any) -> Book:
    """Two endpoints, and nothing measured yet; a study of its own, begun a minute after the last."""
    book = Book(**{"started_utc": (FIRST_MADE + timedelta(minutes=next(_made))).isoformat()} | header)
    for name, url in (("onnx-http", "127.0.0.1:8010"), ("onnx-grpc", "127.0.0.1:8011")):
        book.endpoint(name, url)
    return book


def add(
    book: Book,
    endpoint: str,
    seconds_ms: Sequence[float],
    *,
    batch: int = 1,
    repeat: int = 1,
    each: int = 200,
    failed: Mapping[int, int] | None = None,
    status: str = "done",
    **more: Any,
) -> Record:
    """One run by one user, with `each` requests around so many ms in every second, and some failed ones."""
    tag = book.plan(endpoint, batch, 1, repeat, **more)
    edge = {"kind": "run", **tag, "utc": "2026-11-21T11:00:01Z"}
    book.records.append(edge | {"event": "start", "workers": ["w0"], "hosts": 1})
    for second, middle in enumerate(seconds_ms):
        values = [round(middle * MS * SPREAD[at % len(SPREAD)]) for at in range(each)]
        line = window(tag, "w0", values, batch) | {"second": FIRST_SECOND + second}
        line |= {"first_start_ns": FIRST_NS + second * 10**9, "last_end_ns": FIRST_NS + (second + 1) * 10**9}
        book.records.append(
            line | {"failures": {"timeout": count} if (count := (failed or {}).get(second)) else {}}
        )
    finished = len(seconds_ms) * each + sum((failed or {}).values())
    book.records.append(drained_line(tag, "w0", 1, finished))
    book.records.append(edge | {"event": "end", "status": status, "note": ""})
    return tag


def repeats(
    book: Book, endpoint: str, ms: float, *, count: int = 5, seconds: int = 6, **more: Any
) -> list[Record]:
    """As many runs, each a bit off; their tags."""
    return [
        add(book, endpoint, [ms * NOISE[(at + len(endpoint)) % len(NOISE)]] * seconds, repeat=at + 1, **more)
        for at in range(count)
    ]


def a_study(grpc_ms: float = 10.0, change: Callable[[Book], object] = lambda _: None, **header: Any) -> Book:
    """HTTP at 10 ms and gRPC, five repeats each; `change` may alter it before its end."""
    book = a_book(**header)
    repeats(book, "onnx-http", 10.0)
    repeats(book, "onnx-grpc", grpc_ms)
    change(book)
    book.footer()
    return book


def source(folder: Path, *books: Book) -> GateSource:
    """Of studies that are written below a folder."""
    paths = [book.write(folder / f"study{number}") for number, book in enumerate(books, 1)]
    return source_of([(path, load_study(path)) for path in paths])


def at_other_times(*grpc_ms: float, **header: Any) -> list[Book]:
    """Studies of one day each, with so many ms of gRPC: a baseline of three that are alike."""
    return [
        a_study(ms, started_utc=f"2026-11-{day:02}T11:00:00.000Z", **header)
        for day, ms in enumerate(grpc_ms or (10.0, 10.05, 9.95), 1)
    ]


def judged(
    folder: Path, thresholds: str, *books: Book, baseline: Book | Sequence[Book] = ()
) -> list[Verdict]:
    """The verdicts on studies by the text of a file of thresholds."""
    before = [baseline] if isinstance(baseline, Book) else baseline
    places = [str(book.write(folder / f"baseline{number}")) for number, book in enumerate(before, 1)]
    then = load_baseline(places) if places else None
    return judge(parse_gates(thresholds, "thresholds.toml"), source(folder, *books), then)


def require(text: str, **fields: str) -> str:
    """A threshold as a file has it; other fields come as TOML."""
    lines = "".join(f"{name} = {value}\n" for name, value in fields.items())
    return f"[[threshold]]\nrequire = '{text}'\n{lines}"


def own(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those of the thresholds that the file declares."""
    return [verdict for verdict in verdicts if verdict.threshold]


def outcomes(verdicts: Sequence[Verdict]) -> dict[str, str]:
    """By cell, of the thresholds that the file declares."""
    return {verdict.cell: verdict.outcome for verdict in own(verdicts)}
