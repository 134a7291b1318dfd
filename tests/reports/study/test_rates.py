"""The folded rate of simulated servers whose capacity is known."""

import heapq
from itertools import groupby
from pathlib import Path

import pytest

from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import FIRST_NS, FIRST_SECOND, drained_line, window

MS = 1_000_000
SECOND = 1_000_000_000
Request = tuple[int, int, int]
"""user, start and end in nanoseconds"""


def closed_loop(
    users: int, requests: int, service_ns: int, servers: int = 1, stagger_ns: int = 0
) -> list[Request]:
    """Users who send their share one after the other to a first-come queue before some servers."""
    waiting = [(FIRST_NS + user * stagger_ns, user) for user in range(users)]
    free = [FIRST_NS] * servers
    left = dict.fromkeys(range(users), requests // users)
    done: list[Request] = []
    while waiting:
        start, user = heapq.heappop(waiting)
        end = max(start, heapq.heappop(free)) + service_ns
        heapq.heappush(free, end)
        done.append((user, start, end))
        left[user] -= 1
        if left[user]:
            heapq.heappush(waiting, (end, user))
    return done


def folded(done: list[Request], workers: int, folder: Path) -> Summary:
    """The requests as a ledger holds them, users dealt to workers in turn, each with a clock of its own."""
    book = Book()
    users = len({user for user, _, _ in done})
    tag = book.plan("onnx-http", 1, users)
    edge = {"kind": "run", **tag}
    names = [f"w{index}" for index in range(workers)]
    book.records.append(edge | {"event": "start", "workers": names, "hosts": 1})
    for index, name in enumerate(names):
        mine = [request for request in done if request[0] % workers == index]
        book.records += windows(tag, name, mine, clock_ns=index * 7_000 * SECOND)
        book.records.append(drained_line(tag, name, users // workers, len(mine)))
    book.records.append(edge | {"event": "end", "status": "done", "note": ""})
    return load_study(book.write(folder)).runs[0]


def windows(
    tag: dict[str, object], worker: str, done: list[Request], clock_ns: int
) -> list[dict[str, object]]:
    """One window for each second in which requests ended."""
    made = []
    for second, group in groupby(sorted(done, key=lambda request: request[2]), lambda r: r[2] // SECOND):
        requests = list(group)
        line = window(tag, worker, [end - start for _, start, end in requests], 1)
        line |= {"first_start_ns": clock_ns + min(start for _, start, _ in requests)}
        line |= {"last_end_ns": clock_ns + max(end for _, _, end in requests)}
        made.append(line | {"second": FIRST_SECOND + second})
    return made


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stagger_ns", [0, 3 * MS])
@pytest.mark.parametrize("requests", [40, 120, 400])
def test_a_queueing_server_is_measured_at_its_capacity(
    tmp_path: Path, workers: int, stagger_ns: int, requests: int
) -> None:
    done = closed_loop(users=8, requests=requests, service_ns=50 * MS, stagger_ns=stagger_ns)
    run = folded(done, workers, tmp_path)
    assert run.counts.requests == requests
    assert run.counts.images_per_s == pytest.approx(20, rel=0.01)


def test_a_serial_run_is_exact(tmp_path: Path) -> None:
    run = folded(closed_loop(users=1, requests=60, service_ns=40 * MS), 1, tmp_path)
    assert (run.counts.measure_ns, run.counts.images_per_s) == (60 * 40 * MS, 25.0)


@pytest.mark.parametrize("servers", [2, 3, 8])
def test_a_parallel_server_is_measured_low_by_less_than_one_request(tmp_path: Path, servers: int) -> None:
    service_ns = 50 * MS
    run = folded(closed_loop(8, 120, service_ns, servers), 1, tmp_path)
    assert run.counts.measure_ns is not None
    least_ns = 120 * service_ns / servers
    assert least_ns <= run.counts.measure_ns < least_ns + service_ns


def test_of_two_workers_the_one_that_took_longer_counts(tmp_path: Path) -> None:
    done = closed_loop(users=2, requests=60, service_ns=10 * MS, servers=2)
    late = [(user, start + user * 5 * MS, end + user * 25 * MS) for user, start, end in done]
    assert folded(late, 2, tmp_path).counts.measure_ns == 30 * 10 * MS + 20 * MS


def slow_arrivals(folder: Path, load: str, last_end_ns: int) -> Summary:
    """Five requests, one a second, in a phase of 5 s."""
    book = Book()
    answered = {"w0": [20 * MS] * 5}
    tag = book.add_open("onnx-http", 1, answered) if load == "open" else book.add("onnx-http", 1, 1, answered)
    for record in book.of(tag):
        record |= {"last_end_ns": FIRST_NS + last_end_ns} if record["kind"] == "window" else {}
    return load_study(book.write(folder)).runs[0]


@pytest.mark.parametrize(
    ("load", "last_end_ms", "measured_ms"),
    # the phase; the last reply, which came after it; the span, since users wait for replies and for no clock
    [("open", 4_020, 5_000), ("open", 6_250, 6_250), ("closed", 4_020, 4_020)],
)
def test_open_load_is_measured_over_its_whole_phase(
    tmp_path: Path, load: str, last_end_ms: int, measured_ms: int
) -> None:
    run = slow_arrivals(tmp_path, load, last_end_ms * MS)
    assert run.counts.measure_ns == measured_ms * MS
    assert run.counts.images_per_s == pytest.approx(5_000 / measured_ms)
