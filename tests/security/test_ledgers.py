"""A small ledger of somebody else's is shown in little memory and time, or refused in one sentence."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from reports.histogram import codec
from reports.histogram.buckets import NS_PER_US
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, health_line, sample_line, window

ROOT = Path(__file__).parents[2]
MOST_MB, MOST_S = 1_024, 120
"""As SECURITY.md has it."""
SMALL_MB = 12
DAYS = 2 * 86_400 - 1


class Shown(NamedTuple):
    code: int
    peak_mb: float
    took_s: float
    said: str


def shown(folder: Path) -> Shown:
    """`reports show` of a folder, and the most memory that it took."""
    began = time.monotonic()
    with (folder / "said").open("w+") as said:
        command = [sys.executable, "-m", "reports", "show", str(folder), "--quiet"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        return Shown(process.returncode, used.ru_maxrss / 1024, time.monotonic() - began, said.read())


def begun(book: Book, level: int) -> dict[str, object]:
    """A run that was planned and begun."""
    tag = book.plan("onnx-grpc", 1, level)
    utc = "2026-11-21T11:00:01Z"
    book.records.append({"kind": "run", **tag, "utc": utc, "event": "start", "workers": ["w0"], "hosts": 1})
    return tag


def days_apart(book: Book) -> None:
    """Of each run two seconds, nearly two days apart."""
    for level in range(1, 401):
        tag = begun(book, level)
        book.records += [{**window(tag, "w0", [10**6], 1), "second": FIRST_SECOND + at} for at in (0, DAYS)]


def samples_days_apart(book: Book) -> None:
    """The same of what the master sampled, and of workers' health."""
    for level in range(1, 201):
        tag = begun(book, level)
        for at in (0, DAYS):
            book.records += [sample_line(tag, FIRST_SECOND + at), health_line(tag, "w0", FIRST_SECOND + at)]


def full_histograms(book: Book) -> None:
    """Histograms in which every bucket has one value: a few hundred bytes each."""
    # Source of the buckets' bounds: HdrHistogram's, of 3 significant digits.
    wider = ((2048 << at >> 1) + (step << at) for at in range(1, 22) for step in range(1024))
    values_ns = [us * NS_PER_US for us in (*range(1, 2048), *wider) if us <= codec.HIGHEST_US]
    text = codec.encoded_ns(values_ns)[0]
    tag = begun(book, 1)
    line = window(tag, "w0", [10**6], 1)
    names = ("latency", "service_time", "send_delay", "wait", "send", "receive", "encode", "decode")
    line |= {"ok": len(values_ns), "histograms": dict.fromkeys(names, text)}
    book.records += [
        {**line, "second": FIRST_SECOND + at} for at in range(int(SMALL_MB * 10**6) // (12 * len(text)))
    ]


def many_runs(book: Book) -> None:
    """A plan of tens of thousands of runs, none of which was made."""
    for level in range(1, 60_001):
        book.plan("onnx-grpc", 1, level)


def many_workers(book: Book) -> None:
    """A second in which tens of thousands of workers are said to have worked."""
    tag = begun(book, 1)
    book.records += [window(tag, f"w{number}", [10**6], 1) for number in range(10_000)]


def many_names(book: Book) -> None:
    """Parts of the server's time by names that are all different."""
    tag = begun(book, 1)
    for at in range(100):
        parts = {f"{at}-{number}": 1 for number in range(5_000)}
        book.records.append(
            {**window(tag, "w0", [10**6], 1), "second": FIRST_SECOND + at, "server_ns": parts}
        )


@pytest.mark.parametrize(
    "bomb", [days_apart, samples_days_apart, full_histograms, many_runs, many_workers, many_names]
)
def test_a_small_ledger(bomb: Callable[[Book], None], tmp_path: Path) -> None:
    book = Book()
    bomb(book)
    book.footer()
    book.write(tmp_path)
    assert (tmp_path / "ledger.jsonl").stat().st_size < SMALL_MB * 10**6
    found = shown(tmp_path)
    assert found.peak_mb < MOST_MB, found
    assert found.took_s < MOST_S, found
    assert found.code == 0 or (found.code == 2 and found.said.count("\n") == 1), found
