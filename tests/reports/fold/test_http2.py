"""What our own wire tells of its HTTP/2 connections, as one for a run."""

from pathlib import Path

import pytest

from reports.fold.http2 import Http2, Http2Records
from reports.fold.path import PathRecords, standing_alone
from reports.ledger.records import check_record
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, path_line

MS = 1_000_000


def line(worker: str, at: int, **http2: object) -> Record:
    return path_line({}, worker, FIRST_SECOND + at, http2=http2)


def http2_of(*records: Record) -> Http2 | None:
    found = Http2Records()
    for record in records:
        found.add(record)
    return found.http2()


def test_connections_that_carry_no_http2_tell_nothing() -> None:
    assert http2_of() is None
    assert http2_of(path_line({}, "w0"), line("w0", 0)) is None
    found = PathRecords()
    found.add([path_line({}, "w0")])
    path = found.path(1)
    assert path is not None
    assert path.http2 is None


def test_what_grew_is_summed_over_seconds_and_workers() -> None:
    grown = {name: n for n, name in enumerate(("frames_sent", "frames_received", "stream_waits", "pings"), 1)}
    stalls = {"stream_stalls": 5, "stream_stalled_ns": 6, "connection_stalls": 7, "connection_stalled_ns": 8}
    found = http2_of(
        line("w0", 0, **grown, goaways=0),
        line("w0", 1, **stalls, connection_waited_ns=21, goaways=1),
        line("w1", 0, **grown, **stalls, retried=3, ping_ns=40),
    )
    twice = {name: 2 * value for name, value in (grown | stalls).items()}
    assert found == Http2(**twice, connection_waited_ns=21, goaways=1, retried=3, ping_ns=5)


def test_connections_of_a_second_are_those_of_all_workers_and_streams_the_most_on_one_connection() -> None:
    found = http2_of(
        line("w0", 0, connections=1, streams=3),
        line("w0", 0, connections=2, streams=16),
        line("w1", 0, connections=4, streams=5),
        line("w0", 1, connections=5, streams=2),
    )
    assert found is not None
    assert (found.connections, found.streams) == (6, 16)


def test_of_several_servers_limits_the_least_counts() -> None:
    found = http2_of(
        line("w0", 0, streams_allowed=100, stream_window_bytes=65_536),
        line("w1", 0, streams_allowed=4, stream_window_bytes=65_535),
        line("w0", 1, streams_allowed=None, stream_window_bytes=4 << 20),
        line("w1", 1, streams_allowed=5),
    )
    assert found is not None
    assert (found.streams_allowed, found.stream_window_bytes) == (4, 65_535)


def test_the_mean_round_trip_of_a_ping_is_over_pings_and_not_over_seconds() -> None:
    found = http2_of(
        line("w0", 0, pings=3, ping_ns=30 * MS, ping_min_ns=9 * MS),
        line("w0", 1, pings=0, ping_ns=0),
        line("w1", 1, pings=1, ping_ns=50 * MS, ping_min_ns=50 * MS),
    )
    assert found is not None
    assert (found.pings, found.ping_ns, found.ping_min_ns) == (4, 20 * MS, 9 * MS)
    unanswered = http2_of(line("w0", 0, pings=0, ping_ns=0))
    assert unanswered is not None
    assert (unanswered.pings, unanswered.ping_ns, unanswered.ping_min_ns) == (0, None, None)


def test_seconds_that_are_over_are_let_go_and_still_count() -> None:
    found = Http2Records()
    found.add(line("w0", 0, connections=3))
    found.add(line("w1", 0, connections=4))
    found.close([FIRST_SECOND])
    found.add(line("w0", 1, connections=5))
    whole = found.http2()
    assert whole is not None
    assert whole.connections == 7


def test_a_ledger_has_it_in_its_path_and_so_has_what_stands_alone(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-grpc", 1, 1, {"w0": [20 * MS] * 40})
    book.path(tag, http2={"connections": 1, "streams": 16, "stream_waits": 12})
    (run,) = load_study(book.write(tmp_path)).runs
    assert run.path is not None
    assert run.path.http2 == Http2(connections=1, streams=16, stream_waits=12)
    assert standing_alone(run.path).http2 == run.path.http2


@pytest.mark.parametrize("told", [7, [1], {"streams": "16"}, {"streams": 1.5}, {"streams": 1 << 63}])
def test_figures_that_are_no_whole_numbers_are_refused(told: object) -> None:
    record = path_line({}, "w0", http2=told)
    with pytest.raises(ValueError, match=r"http2 is .*, and must be whole numbers from 0 by name"):
        check_record(record)
    check_record(path_line({}, "w0", http2={"streams": 16}))
