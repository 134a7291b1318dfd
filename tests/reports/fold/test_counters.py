"""What lies between two readings of a server's counters, and what of it is taken from its answers."""

from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from reports.fold.server import (
    Cold,
    Executed,
    ServerSide,
    between,
    cold,
    excess_ns,
    predicted_ns,
    server_side,
    unread,
)
from reports.fold.server_facts import Serving
from reports.fold.windows import Windows
from tests.reports.lines import Record

MS, S = 1_000_000, 1_000_000_000
BEFORE = {"requests": 7, "successes": 5, "images": 40, "executions": 10, "queue_ns": 100, "compute_ns": 900}
GROWN = {"requests": 25, "successes": 20, "images": 80, "executions": 10, "queue_ns": 60, "compute_ns": 500}


def after(before: Record = BEFORE, **grown: int) -> Record:
    """Counters that grew so since `before`, each as usual where nothing is said of it."""
    return {name: value + (GROWN | grown).get(name, 0) for name, value in before.items()}


def test_means_are_per_success_and_batches_per_execution() -> None:
    found = between(BEFORE, after())
    assert (found.requests, found.executions, found.executed_batch) == (25, 10, 8.0)
    assert (found.parts, found.total_ns) == ({"queue": 3.0, "compute": 25.0}, 28.0)
    assert (found.queue_ns, found.compute_ns, found.other_ns) == (3.0, 25.0, 0.0)
    # 20 requests shared 10 executions, each of which counts its whole time
    assert (found.executing_ns, found.silent, found.gap, found.batches) == (None, False, None, {})
    assert between(BEFORE, after(executions=20)).executing_ns == 500
    names = ("decode_ns", "preprocess_ns", "input_ns", "output_ns", "upstream_ns", "queue_ns", "strange_ns")
    every = dict.fromkeys(names, 0) | {"requests": 0}
    told = between(every, {name: 2 * at for at, name in enumerate(names, 1)} | {"requests": 2})
    assert (told.other_ns, told.total_ns, len(told.parts)) == (15.0, 21.0, 6)
    assert (ServerSide().total_ns, ServerSide().other_ns, ServerSide().compute_ns) == (None, None, None)


@pytest.mark.parametrize("names", [some for n in range(7) for some in combinations(BEFORE, n)])
def test_any_subset_of_counters_tells_what_follows_from_it(names: tuple[str, ...]) -> None:
    first, last = ({name: told[name] for name in names} for told in (BEFORE, after(executions=20)))
    found, told = between(first, last), frozenset(names)
    served = 20 if "successes" in told else 25 if "requests" in told else None
    parts = {"queue": 60, "compute": 500} if served else {}
    assert found.parts == {
        part: pytest.approx(ns / served) for part, ns in parts.items() if served and f"{part}_ns" in told
    }
    assert found.requests == (25 if "requests" in told else None)
    assert found.executions == (20 if "executions" in told else None)
    assert found.executed_batch == (4 if told >= {"images", "executions"} else None)
    alone = told >= {"successes", "executions", "compute_ns"}
    assert (found.executing_ns, found.gap) == (500 if alone else None, None)


@pytest.mark.parametrize(
    ("first", "last", "silent"),
    [
        ({}, {}, True),
        ({"requests": 1}, {"requests": 2}, True),
        ({"queue_ns": 1}, {}, False),
        ({}, {"batches": {}}, False),
    ],
)
def test_a_server_that_states_no_times_is_silent(first: Record, last: Record, silent: bool) -> None:
    assert between(first, last).silent is silent


def test_executions_by_size_tell_how_long_they_took() -> None:
    sizes = (
        {"4": [10, 100 * MS], "8": [2, 60 * MS]},
        {"4": [12, 124 * MS], "8": [2, 60 * MS], "16": [1, 400 * MS]},
    )
    first, last = (
        counted | {"batches": by_size} for counted, by_size in zip((BEFORE, after()), sizes, strict=True)
    )
    found = between(first, last)
    assert (found.batches, found.executions) == ({4: Executed(2, 24 * MS), 16: Executed(1, 400 * MS)}, 3)
    assert (found.executing_ns, found.cold.batches) == (424 * MS, (16,))
    assert found.cold.share == pytest.approx((400 - 4 * 12) / 424)
    # nothing was executed that is counted by size
    same = between(first, after() | {"batches": sizes[0]})
    assert (same.executions, same.batches) == (10, {})


@pytest.mark.parametrize(
    ("kind", "when", "code"),
    [
        *((kind, "after", "server-lost") for kind in ("refused", "unreachable", "reset", "timeout")),
        *((kind, "before", "probe-gap") for kind in ("refused", "reset")),
        *(("rejected", "after", "probe-gap"), (None, "after", "probe-gap")),
    ],
)
def test_nobody_who_answers_after_the_phase_was_lost_in_it(kind: str | None, when: str, code: str) -> None:
    gap = unread({"when": when, "error_kind": kind, "error": "so it was"})
    assert (gap.code, gap.text.removeprefix("after the measure phase ")) == (code, "so it was")
    assert gap.text.startswith("after") == (code == "server-lost")


def edges(**last: Any) -> list[Record]:
    """Three readings, the first of which was made in vain."""
    return [
        {"when": "after", "counters": BEFORE, "t_ns": 1},
        {"when": "before", "counters": BEFORE, "t_ns": 2 * S},
        {"when": "after", "counters": after(), "t_ns": 6 * S} | last,
    ]


def answered(count: int = 20, **server_ns: int) -> Windows:
    return Windows(ok=20, failure_kinds=Counter(timeout=5), server_count=count, server_ns=Counter(server_ns))


def test_parts_are_the_answers_own_where_they_state_some() -> None:
    asked = server_side(edges(), answered(0), "done")
    assert (asked.parts, asked.span_ns, asked.requests) == ({"queue": 3.0, "compute": 25.0}, 4 * S, 25)
    told = server_side(edges(), answered(10, compute=600, queue=50, strange=7), "done")
    assert (told.parts, told.silent) == ({"queue": 5.0, "compute": 60.0}, False)
    # of the answers, which came over a time of their own
    assert (told.executing_ns, told.executions, told.span_ns) == (600, 10, None)
    counted = server_side(edges(counters=after(executions=20)), answered(10, compute=600), "done")
    assert (counted.executing_ns, counted.executions, counted.span_ns) == (500, 20, 4 * S)
    nobody = server_side([], answered(0, compute=600), "done")
    assert (nobody.parts, nobody.gap and nobody.gap.code) == ({}, "probe-gap")


@pytest.mark.parametrize(
    ("side", "serving", "busy", "several"),
    [
        (ServerSide(executing_ns=2 * S, executions=100), Serving(instances=1), 0.5, False),
        (ServerSide(executing_ns=2 * S, executions=100, span_ns=8 * S), Serving(instances=1), 0.25, False),
        (ServerSide(executing_ns=6 * S, executions=100), Serving(instances=3), 0.5, False),
        (ServerSide(executing_ns=6 * S, executions=100), Serving(instances=1), None, True),
        (ServerSide(executing_ns=6 * S, executions=1), Serving(instances=1), 1.0, False),
        (ServerSide(executing_ns=2 * S, executions=100, several="two"), Serving(instances=1), None, True),
        (ServerSide(executing_ns=2 * S, executions=100), Serving(), None, False),
        (ServerSide(executing_ns=2 * S, executions=100), None, None, False),
        (ServerSide(), Serving(instances=1), None, False),
    ],
)
def test_how_busy_instances_were_in_4_s(
    side: ServerSide, serving: Serving | None, busy: float | None, several: bool
) -> None:
    found = side.over(4.0 * S, serving)
    assert (found.busy, bool(found.several)) == (busy, several)


def sizes(**counted: tuple[int, float]) -> dict[int, Executed]:
    """`b8=(3, 30)`: batch 8 was executed 3 times, in 30 ms together."""
    return {int(name[1:]): Executed(count, round(time_ms * MS)) for name, (count, time_ms) in counted.items()}


def test_a_prediction_scales_up_from_the_dearest_warm_size_and_never_down() -> None:
    warm = sizes(b1=(10, 50), b4=(10, 120))
    # 5 ms an execution of one, 12 ms of four
    assert (predicted_ns(8, warm), predicted_ns(2, warm)) == (40 * MS, 12 * MS)


@pytest.mark.parametrize(
    ("count", "time_ms", "predicted_ms", "excess_ms"),
    [
        (1, 119, 40, 0),
        (1, 121, 40, 81),
        # the first alone would be below 3 times
        (10, 479, 40, 0),
        # 3 and more, but a mean of 1.4 times may be a prediction that is too low
        (10, 560, 40, 0),
        (10, 700, 40, 300),
        # a hiccup of a scheduler
        (1, 9, 0.1, 0),
        (1, 11, 0.1, 10.9),
    ],
)
def test_what_is_dear(count: int, time_ms: float, predicted_ms: float, excess_ms: float) -> None:
    found = excess_ns(Executed(count, round(time_ms * MS)), predicted_ms * MS)
    assert found == pytest.approx(excess_ms * MS)


WARM = sizes(b1=(50, 500), b4=(0, 0))


@pytest.mark.parametrize(
    ("before", "grown", "share", "batches"),
    [
        (WARM, sizes(b1=(100, 1_000), b4=(1, 1_040)), 1_000 / 2_040, (4,)),
        (WARM, sizes(b1=(100, 1_000), b4=(1, 40)), 0, ()),
        (WARM, sizes(b1=(100, 1_000)), 0, ()),
        # what others had cost is the measure where no warm size was executed
        (WARM, sizes(b4=(10, 1_400)), 1_000 / 1_400, (4,)),
        ({}, sizes(b4=(10, 1_400), b1=(1, 5)), None, (1, 4)),
        ({}, {}, None, ()),
    ],
)
def test_new_sizes_are_cold_that_cost_more_than_warm_ones_would_have(
    before: dict[int, Executed], grown: dict[int, Executed], share: float | None, batches: tuple[int, ...]
) -> None:
    assert cold(before, grown) == Cold(None if share is None else pytest.approx(share), batches)
