"""Whether a service stalled, and how seldom that is said of one that did not."""

import heapq
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reports.caveats.stalls import Stalls, find_stalls
from reports.fold.windows import Silences
from reports.histogram.codec import decoded, encoded_ns
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, health_line, window

MS, SECOND = 1_000_000, 1_000_000_000
Law = Callable[[np.random.Generator], float]
LAWS: dict[str, Law] = {
    "exponential": lambda draw: float(draw.exponential()),
    "lognormal": lambda draw: float(np.exp(1.5 * draw.normal())),
    "a slow one in 30": lambda draw: 30.0 if draw.random() < 1 / 30 else 1.0,
    "Pareto": lambda draw: float(draw.pareto(2.0)),
    "fixed": lambda draw: 1.0 + 0.02 * float(draw.random()),
}


def found(
    law: Law, mean_s: float, users: int, seed: int = 1, stall_s: float = 0.0, seconds: int = 20
) -> Stalls | None:
    """What is found of users in a closed loop whose answers take so long, held back for a while every 7 s."""
    draw = np.random.default_rng(seed)
    waiting = [(mean_s * law(draw), 0.0) for _ in range(users)]
    heapq.heapify(waiting)
    silences: dict[int, tuple[float, float]] = {}
    took_ns, answered_s = [], 0.0
    while waiting[0][0] < seconds:
        end_s, start_s = heapq.heappop(waiting)
        took_ns.append(max(1, round((end_s - start_s) * SECOND)))
        from_s, answered_s = max(start_s, answered_s), end_s
        silences[int(end_s)] = max(silences.get(int(end_s), (0.0, 0.0)), (end_s - from_s, from_s))
        then_s = end_s + mean_s * law(draw)
        heapq.heappush(waiting, (then_s + max(0.0, stall_s - then_s % 7), end_s))
    told = [
        (round(from_s * SECOND), round(length_s * SECOND), round(length_s * SECOND))
        for _, (length_s, from_s) in sorted(silences.items())
    ]
    return find_stalls(told, decoded(encoded_ns(took_ns)[0]), seconds * SECOND)


@pytest.mark.parametrize("users", [3, 8])
@pytest.mark.parametrize("law", ["exponential", "fixed"])
def test_a_service_that_stalls_for_0_7_s_every_7_s(law: str, users: int) -> None:
    stalls = found(LAWS[law], 0.01, users, stall_s=0.7, seconds=60)
    assert stalls is not None
    assert len(stalls.lengths_ns) in (8, 9)
    assert np.median(stalls.lengths_ns) == pytest.approx(0.7 * SECOND, rel=0.05)
    assert stalls.share == pytest.approx(0.1, abs=0.02)
    assert stalls.rhythm == ", every 7.00 s"


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("mean_s", "users"), [(0.01, 8), (0.1, 1), (0.1, 3), (0.5, 1), (0.5, 8), (2.0, 4)])
def test_a_service_without_stalls_has_none(law: str, mean_s: float, users: int) -> None:
    assert [found(LAWS[law], mean_s, users, seed) for seed in range(20 if mean_s > 0.05 else 3)].count(
        None
    ) >= (20 if mean_s > 0.05 else 3)


def opened(law: Law, mean_s: float, rate: float, seed: int = 1, stall_s: float = 0.0) -> Stalls | None:
    """The same of Poisson arrivals in 30 s that nobody waits for."""
    draw = np.random.default_rng(seed)
    starts_s = np.cumsum(draw.exponential(1 / rate, round(30 * rate)))
    ends_s = [float(start_s) + mean_s * law(draw) for start_s in starts_s]
    answers = sorted(
        (end_s + max(0.0, stall_s - end_s % 7), float(at)) for end_s, at in zip(ends_s, starts_s, strict=True)
    )
    silences: dict[int, tuple[float, float]] = {}
    answered_s = 0.0
    for end_s, start_s in answers:
        if end_s > 30:
            break
        from_s, answered_s = max(start_s, answered_s), end_s
        silences[int(end_s)] = max(silences.get(int(end_s), (0.0, 0.0)), (end_s - from_s, from_s))
    told = [
        (round(from_s * SECOND), *[round(length_s * SECOND)] * 2) for length_s, from_s in silences.values()
    ]
    took_ns = [max(1, round((end_s - start_s) * SECOND)) for end_s, start_s in answers]
    return find_stalls(told, decoded(encoded_ns(took_ns)[0]), 30 * SECOND, is_open=True)


@pytest.mark.parametrize("rate", [20, 100])
def test_open_loop_load_sees_a_service_that_stalls(rate: int) -> None:
    stalls = opened(LAWS["fixed"], 0.01, rate, stall_s=0.7)
    assert stalls is not None
    assert len(stalls.lengths_ns) == 5
    assert stalls.share == pytest.approx(5 * 0.7 / 30, abs=0.01)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("mean_s", "rate"), [(0.01, 2), (0.3, 2), (0.05, 20), (0.05, 100)])
def test_slow_answers_under_open_loop_load_are_no_stalls(law: str, mean_s: float, rate: float) -> None:
    assert not any(opened(LAWS[law], mean_s, rate, seed) for seed in range(5))


def test_of_one_user_a_stall_and_a_slow_answer_look_alike() -> None:
    assert found(LAWS["fixed"], 0.01, 1, stall_s=0.7, seconds=60) is None


def silences(*stalled_ms: float, count: int = 20) -> Stalls | None:
    """Of seconds whose longest silence was 5 ms, and of some that had one of so many."""
    lengths_ms = [*stalled_ms, *[5.0] * (count - len(stalled_ms))]
    told = [(at * SECOND, round(ms * MS), round(ms * MS)) for at, ms in enumerate(lengths_ms)]
    slow = [round(ms * MS) for ms in stalled_ms for _ in range(8)]
    answers = decoded(encoded_ns([10 * MS] * 16_000 + slow)[0])
    return find_stalls(told, answers, count * SECOND)


@pytest.mark.parametrize(
    ("stalled_ms", "count", "times"),
    [
        *(((101, 101), 20, 2), ((99, 101), 20, 0), ((100, 100), 21, 0)),  # 0.1 s, and 1 % of the time
        *(((1_000,), 20, 1), ((999,), 20, 0)),  # one alone
        *(((700, 700), 8, 2), ((700, 700), 7, 0)),
    ],
)
def test_which_silences_are_stalls(stalled_ms: tuple[float, ...], count: int, times: int) -> None:
    stalls = silences(*stalled_ms, count=count)
    assert (len(stalls.lengths_ns) if stalls else 0) == times


def test_stalls_without_a_rhythm() -> None:
    begins = [0, 3 * SECOND, 4 * SECOND, 12 * SECOND]
    assert Stalls(begins, [SECOND] * 4, 20 * SECOND).rhythm == ", at irregular intervals of 1.00 to 8.00 s"
    assert Stalls(begins[:2], [SECOND] * 2, 20 * SECOND).rhythm == ""


def test_workers_are_silent_together_where_their_silences_overlap() -> None:
    told = Silences()
    told.add([{"second": 5, "silence": [10, 90]}, {"second": 6, "silence": [100, 120]}])
    told.add([{"second": 5, "silence": [40, 200]}, {"second": 6, "silence": [130, 140]}, {"second": 7}])
    assert told.of(2) == [(40, 50, 80), (130, 0, 10)]
    assert told.of(1) == []


@pytest.mark.parametrize(("lag_ms", "said"), [(0.1, True), (340.0, True), (360.0, False)])
def test_what_the_clients_loop_did_is_no_stall(tmp_path: Path, lag_ms: float, said: bool) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 8, {"w0": [10 * MS] * 1_600})
    for at in range(20):
        length_ns = 700 * MS if at in (3, 10, 17) else 5 * MS
        begin_ns = (FIRST_SECOND + at) * SECOND
        values = [10 * MS] * 700 + [700 * MS] * 8 * (length_ns > SECOND // 2)
        made = window(tag, "w0", values, 1) | {"second": FIRST_SECOND + at}
        book.records.insert(-1, made | {"silence": [begin_ns, begin_ns + length_ns]})
        book.records.insert(-1, health_line(tag, "w0", FIRST_SECOND + at, [round(lag_ms * MS)]))
    for record in book.of(tag):
        if record["kind"] == "drained":
            record["finished"] = 1_600 + 20 * 700 + 24
            record["users_ns"] = 8 * 20 * SECOND
    run = load_study(book.write(tmp_path)).runs[0]
    assert [one.text for one in run.caveats if one.code == "stalls"] == [
        "3 times nobody was answered for 700 ms, every 7.00 s; 10.5 % of arrivals would have met that; "
        "the slowest answer took 700 ms"
    ] * said
