"""Traces in files: what is read of each kind, what is refused and how, what is written comes back."""

import io
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from swarm.traces import trace
from swarm.traces.trace import MOST_ROWS, ArrivalTrace, TraceRow, read_trace, write_trace

MOMENT = datetime(2026, 11, 26, 9, 0, 0, 250_000, UTC)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def columns(trace: ArrivalTrace) -> tuple[list[Any], ...]:
    pictures = [] if trace.pictures is None else trace.pictures.tolist()
    return trace.times_s.tolist(), trace.items.tolist(), list(trace.endpoints), pictures


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "time\n0\n0.5\n0.5\n", ([0, 0.5, 0.5], [1, 1, 1], [], [])),
        ("a.CSV", "\ufeffTime,batch\r\n1e0,4\r\n3,\r\n", ([0, 2], [4, 1], [], [])),
        (
            "a.csv",
            "timestamp,items,endpoint,picture\n2026-11-26T09:00:00Z,2,onnx-http,\n"
            "2026-11-26T10:00:01.5+01:00,1,onnx-grpc,3\n",
            ([0, 1.5], [2, 1], ["onnx-http", "onnx-grpc"], [-1, 3]),
        ),
        ("a.csv", "time\n1764147600.5\n1764147602\n", ([0, 1.5], [1, 1], [], [])),
        (
            "a.jsonl",
            '{"time": 0.25, "items": 4}\n\n{"time": "1", "endpoint": "x", "picture": 2}',
            ([0, 0.75], [4, 1], ["", "x"], [-1, 2]),
        ),
        ("a.jsonl", '{"timestamp": "2026-11-26 09:00"}', ([0], [1], [], [])),
    ],
)
def test_what_a_trace_says(tmp_path: Path, name: str, text: str, expected: tuple[list[Any], ...]) -> None:
    trace = read_trace(written(tmp_path, name, text))
    assert columns(trace) == expected
    assert trace.notes == ()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_parquet_with_times_of_any_unit(tmp_path: Path, unit: str) -> None:
    times = pyarrow.array([MOMENT, MOMENT.replace(second=2, microsecond=0)], pyarrow.timestamp("us", "UTC"))
    table = {"timestamp": times.cast(pyarrow.timestamp(unit, "UTC"), safe=False), "batch": [8, 1]}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    found = columns(read_trace(tmp_path / "a.parquet"))
    assert found == ([0, 2 if unit == "s" else 1.75], [8, 1], [], [])


def test_rows_out_of_order_are_sorted_and_it_is_said(tmp_path: Path) -> None:
    text = "time,items,status\n0,1,200\n2,2,200\n1,3,200\n2,4,500\n1.5,5,200\n"
    trace = read_trace(written(tmp_path, "log.csv", text), resolution_s=0)
    assert columns(trace)[:2] == ([0, 1, 1.5, 2, 2], [1, 3, 5, 2, 4])
    assert trace.notes == (
        "columns that a trace does not have are left out: status",
        "2 rows came before the one above: all were sorted by time",
    )


TIME = "give seconds from 0, or an ISO 8601 time such as 2026-11-26T09:00:00.250Z"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", "", "has no requests; give at least one row"),
        ("a.csv", "time\n", "has no requests; give at least one row"),
        ("a.txt", "time\n1\n", "is no trace by its name; give a file that ends in .csv, .jsonl, .parquet"),
        ("a.csv", "when\n1\n", "line 2: has no time; give a column time, in seconds or ISO 8601"),
        ("a.csv", "time,timestamp\n1,2\n", "line 2: time is given twice; leave out timestamp"),
        ("a.csv", "time\n0\n-1\n", f"line 3: time is '-1'; {TIME}"),
        ("a.csv", "time\nnan\n", f"line 2: time is 'nan'; {TIME}"),
        ("a.csv", "time\n1e999\n", f"line 2: time is '1e999'; {TIME}"),
        ("a.jsonl", '{"time": 1' + "0" * 400 + "}", "line 1: time is 1000"),
        ("a.csv", "time\nnoon\n", f"line 2: time is 'noon'; {TIME}"),
        ("a.csv", "time\n0\n2026-11-26T09:00Z\n", "line 3: time has ISO 8601 with a zone, and time "),
        ("a.csv", "time\n0\n700000.25\n", "is 700,000 s long; give one of at most 604,800 s, a week"),
        ("a.csv", "time\n1970-01-01T00:00Z\n", "line 2: time is 1970-01-01T00:00:00+00:00; give one"),
        ("a.csv", "time,items\n0,0\n", "line 2: items is '0'; give a whole number from 1 to 4,096"),
        ("a.csv", "time,batch\n0,1.5\n", "line 2: items is '1.5'; give a whole number from 1 to 4,096"),
        ("a.csv", "time,items\n0,4097\n", "line 2: items is '4097'; give a whole number from 1 to 4,096"),
        ("a.csv", "time,picture\n0,-1\n", "line 2: picture is '-1'; give a whole number from 0 to 1,000,000"),
        ("a.csv", "time,items\n0,1,2\n", "line 2: give it 2 fields, as the first line has"),
        ("a.csv", "time,items\n0\n", "line 2: give it 2 fields, as the first line has"),
        ("a.csv", 'time\n"0\n', "line 2: is no CSV (unexpected end of data)"),
        ("a.csv", b"time\n\xff\n", "is not UTF-8 text (byte 5); save it as UTF-8"),
        ("a.jsonl", "[1]", 'line 1: is no JSON object; give one such as {"time": 0.25, "items": 4}'),
        ("a.jsonl", '{"time": NaN}', "line 1: is no JSON object; give one such as"),
        ("a.jsonl", '{"time": true}', f"line 1: time is True; {TIME}"),
        ("a.jsonl", '{"time": [1]}', f"line 1: time is [1]; {TIME}"),
        ("a.jsonl", '{"time": 1, "items": true}', "line 1: items is 'True'; give a whole number"),
        ("a.parquet", "PAR1", "is no Parquet file that can be read (Parquet file size is 4 bytes"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, name: str, text: str | bytes, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_trace(written(tmp_path, name, text))
    assert str(refused.value).startswith(sentence)


def test_a_damaged_parquet_file_is_refused_in_one_line(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"time": [0.5, 1.5], "endpoint": ["a", None]}), tmp_path / "a.parquet")
    whole, chance, refused = (tmp_path / "a.parquet").read_bytes(), random.Random(1), list[str]()
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] = chance.randrange(256)
        try:
            read_trace(written(tmp_path, "b.parquet", bytes(damaged)))
        except ValueError as error:
            refused.append(str(error))
    assert not any("\n" in sentence for sentence in refused)
    assert len(refused) > 20


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no.csv", r"cannot be read \(No such file or directory\); name a trace"),
        ("a\0b", r"cannot be read \(no path has a NUL in it\); name a trace"),
        ("/dev/zero", r"cannot be read \(it is no regular file\); name a trace"),
        ("\ud800", "is no path; name a trace"),
    ],
)
def test_places_without_a_trace(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        read_trace(text)


def test_more_rows_than_a_trace_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_ROWS == 1_000_000
    monkeypatch.setattr(trace, "MOST_ROWS", 3)
    assert len(read_trace(written(tmp_path, "a.csv", "time\n" + "1\n" * 3))) == 3
    with pytest.raises(ValueError, match="has more than 3 rows; give at most so many"):
        read_trace(written(tmp_path, "b.csv", "time\n" + "1\n" * 4))


def test_a_file_is_read_again_only_if_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "a.csv", "time\n1\n")
    monkeypatch.chdir(tmp_path)
    before = trace._read.cache_info().misses
    assert read_trace(path) is read_trace(path)
    assert trace._read.cache_info().misses == before + 1, "an option's check reads what its study replays"
    written(tmp_path, "a.csv", "time\n1\n2\n")
    assert len(read_trace(path)) == 2


@pytest.mark.parametrize("kind", [".csv", ".jsonl"])
def test_what_is_written_comes_back(tmp_path: Path, kind: str) -> None:
    rows = [TraceRow(0.1, 4, "a", 3), TraceRow(0.100001, 1, "", -1), TraceRow(7, 16, "b", 0)]
    made, text = ArrivalTrace.of(rows), io.StringIO()
    write_trace(made, text, kind)
    assert columns(read_trace(written(tmp_path, f"a{kind}", text.getvalue()))) == columns(made)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [([0, 1, 2, 3], 4), ([0.5, 1, 4.5], 6), ([500, 501], 2), ([0], 1), ([3, 3], 1)],
)
def test_a_trace_is_a_mean_gap_longer_than_its_last_request(times: Sequence[float], seconds: float) -> None:
    trace = ArrivalTrace.of(map(TraceRow, times))
    assert (trace.seconds, trace.mean_per_s) == (seconds, len(times) / seconds)


def test_an_endpoint_has_the_rows_that_name_it_or_all() -> None:
    named = ArrivalTrace.of([TraceRow(0, 1, "a"), TraceRow(1, 2, "b"), TraceRow(2.0000000004, 3, "a", 5)])
    own = named.of_endpoint("a")
    assert own is not None
    assert (own.times_ns.tolist(), own.items.tolist()) == ([0, 2_000_000_000], [1, 3])
    assert own.pictures is not None
    assert own.pictures.tolist() == [-1, 5]
    assert named.of_endpoint("c") is None
    every = ArrivalTrace.of([TraceRow(0), TraceRow(1)]).of_endpoint("c")
    assert every is not None
    assert (len(every), every.pictures) == (2, None)
    with pytest.raises(ValueError, match="has 33 different batches; give at most 32"):
        ArrivalTrace.of(TraceRow(0, items) for items in range(1, 34)).of_endpoint("a")
    assert np.issubdtype(every.items.dtype, np.uint16)
