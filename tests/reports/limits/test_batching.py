"""Batches as the limit: flat executions that are not full, batching that is off, and one slow size."""

from dataclasses import replace
from typing import Any

import pytest

from reports.fold.server import Batches, Cold, Executed
from reports.fold.windows import Offered
from reports.limit import Limit
from reports.limits.batching import CAN_BE_SLOW, FILL, fit_of, of_batches, pooled, server_of, slow_shape
from reports.limits.neighbours import among_neighbours
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server
from tests.reports.parts import changed

FLAT_MS = 8.0
ONE = {"instances": 1, "max_batch": 32, "batching": True, "batching_delay_ns": 0}


def taking(sizes: dict[int, tuple[int, float]]) -> Batches:
    """Executions by size: how many, and the milliseconds of each."""
    return {size: Executed(count, round(count * took * MS)) for size, (count, took) in sizes.items()}


def executing(
    users: int, sizes: dict[int, tuple[int, float]], *, front_ms: float = 1.0, **changes: Any
) -> Summary:
    """A closed loop of one instance that executes these sizes one after the other for all of its time.

    `front_ms` passes between an answer and the next request. What else an image's user waits for, by
    Little's law, is the queue.
    """
    images = sum(size * count for size, (count, _) in sizes.items())
    executions = sum(count for count, _ in sizes.values())
    whole_ms = sum(count * took for count, took in sizes.values())
    rate = images / whole_ms
    batch = changes.get("batch", 1)
    latency_ms = users * batch / rate
    work_ms = sum(size * count * took for size, (count, took) in sizes.items()) / images
    known = {
        "cell": f"emulated-grpc/b{batch}/c{users}",
        "level": users,
        "in_flight": float(users),
        "measure_ns": None,
        "images_per_s": 1e3 * rate,
        "executed_batch": images / executions,
        "server.batches": taking(sizes),
        "server_busy": 0.99,
        "serving": ONE,
    }
    queue_ms = max(0.0, latency_ms - work_ms - front_ms)
    return at_server(queue_ms, work_ms, latency_ms, **known | changes)


def limits(*runs: Summary) -> list[Limit]:
    """Those of a study's runs, which are first judged one by one."""
    told = among_neighbours([changed(run, limit=limit_of(run)) for run in runs])
    return [run.limit for run in told if run.limit]


def flat(users: int, size: int, **changes: Any) -> Summary:
    """Executions that take 8 ms whatever their size: some of one image, the others of so many."""
    return executing(users, {1: (10, FLAT_MS), size: (600, FLAT_MS)}, **{"front_ms": 6.0} | changes)


@pytest.mark.parametrize(("users", "size"), [(4, 4), (16, 8), (64, 25)])
def test_of_a_flat_curve_users_are_the_limit(users: int, size: int) -> None:
    """Half of the users wait while the others are executed, and each batch costs the same."""
    [limit] = limits(flat(users, size))
    mean = (10 + 600 * size) / 610
    assert limit.code == "batches-not-full"
    assert limit.evidence.startswith(f"executions had {mean:.3g}")
    assert "of at most 32 images and took 8.0 ms whatever their size" in limit.evidence
    assert limit.advice.startswith("Add users (or larger --batches")
    assert "device" not in limit.advice
    assert "instances" not in limit.advice


def test_the_three_levels_together_say_what_more_users_gained() -> None:
    first, second, third = limits(flat(4, 4), flat(16, 8), flat(64, 25))
    assert {limit.code for limit in (first, second, third)} == {"batches-not-full"}
    assert first.evidence.endswith("; 16 users got 100 % more images/s than 4")
    assert second.evidence.endswith("; 64 users got 212 % more images/s than 16")
    assert "users got" not in third.evidence


def test_one_user_sees_a_single_size_and_other_levels_have_the_rest() -> None:
    alone = executing(1, {1: (900, FLAT_MS)}, front_ms=0.5)
    assert [limit.code for limit in limits(alone)] == ["server-compute"]
    both = limits(alone, executing(16, {8: (600, FLAT_MS)}))
    assert [limit.code for limit in both] == ["batches-not-full", "batches-not-full"]
    assert "executions had 1.00 of at most 32 images" in both[0].evidence


def test_where_a_full_batch_waits_the_batcher_does_not_take_it() -> None:
    [limit] = limits(flat(64, 8))
    assert limit.code == "batches-not-full"
    assert limit.advice.startswith("Let batches fill, since the requests for a full one are waiting")
    first, _ = limits(flat(64, 8), flat(128, 16))
    assert first.advice.startswith("Add users: the next level of this study got more images/s. Let batches")


def test_one_user_who_waits_for_others_that_do_not_come() -> None:
    serving = ONE | {"batching_delay_ns": 10 * MS}
    known: dict[str, Any] = {
        "serving": serving,
        "server_busy": 0.42,
        "server_queue_ns": 10 * MS,
        "latency_mean_ns": 19 * MS,
    }
    alone = executing(1, {1: (300, FLAT_MS)}, **known | {"service_mean_ns": 19 * MS, "images_per_s": 52.6})
    first, _ = limits(alone, flat(16, 8))
    assert first.code == "batches-not-full"
    assert "; requests waited 10.0 of 19.0 ms for a batch to fill; 16 users got" in first.evidence
    assert (
        first.advice == "Add users or use larger --batches, or lower the batching delay (--queue-delay-us)."
    )


def test_more_arrivals_do_not_fill_batches_that_leave_requests_waiting() -> None:
    """450 images wait in the queue, and executions have eight of 32: more arrive than are taken."""
    known: dict[str, Any] = {"load": "open", "arrivals": "poisson", "due": 5_000, "level": 1_000.0}
    known |= {"offered": Offered(1_000.0, 1, 5.0), "server_busy": 0.97, "images_per_s": 900.0}
    known |= {"latency_mean_ns": 520 * MS, "service_mean_ns": 520 * MS, "server_queue_ns": 500 * MS}
    [limit] = limits(flat(520, 8, **known))
    assert limit.code == "batches-not-full"
    assert limit.advice.startswith("Let batches fill, since the requests for a full one are waiting")


def test_a_batcher_that_never_fills_gives_no_more_to_more_users() -> None:
    """Its preferred size is eight of 32: that levels above gain nothing is its doing, too."""
    found = limits(*(flat(users, 8) for users in (64, 128, 256)))
    assert [limit.code for limit in found] == ["batches-not-full"] * 3
    assert all(limit.advice.startswith("Let batches fill, since the requests") for limit in found)
    assert found[0].evidence.endswith("; 128 users gained only 0 % over 64")


def test_a_batcher_that_does_not_fill_where_enough_requests_wait() -> None:
    first, second = limits(flat(16, 8), flat(64, 8))
    assert (first.code, second.code) == ("batches-not-full", "batches-not-full")
    assert first.evidence.endswith("; 64 users gained only 0 % over 16")
    assert first.advice.startswith("More users would not help, since batches are no larger where")
    assert limits(flat(16, 8), flat(64, 8), flat(64, 8, repeat=2, server_queue_ns=20 * MS))[0] == first
    assert limits(flat(16, 8), flat(32, 8))[0].code == "server-compute"


def test_requests_that_do_not_share_executions() -> None:
    """Sixteen users of one image; what larger executions take is known from a cell of batch 8."""
    serving = {"instances": 1, "max_batch": 32, "batching": False}
    single = executing(16, {1: (900, 8.0)}, serving=serving)
    [alone] = limits(single)
    assert alone.code == "server-queue"
    eights = executing(16, {8: (700, 9.0)}, batch=8, serving=serving)
    off, larger = limits(single, eights)
    assert off.code == "batching-off"
    assert "the model takes up to 32 images and does not batch requests" in off.evidence
    assert "executions took 8.0 ms with 1 image and 9.0 with 8" in off.evidence
    assert off.advice.startswith("Turn on dynamic_batching")
    assert larger.code == "batching-off"
    more = executing(32, {1: (900, 5.0)}, serving=serving)
    assert limits(single, more, eights)[0].code == "offered-load"


def test_one_slow_size_among_those_of_a_run() -> None:
    """Batches of three take sixty times as long as their neighbours."""
    run = executing(4, {1: (200, 8.0), 2: (200, 8.0), 3: (20, 480.0), 4: (200, 8.2)})
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == "slow-shape"
    assert limit.evidence == (
        "executions of 3 images took 480 ms, those of 2 and 4 8.0 and 8.2 ms; "
        "they were 66.5 % of all execution time"
    )
    assert limit.advice.startswith("Avoid this size of a batch (by --batches, or preferred_batch_size)")


def test_a_cold_size_is_no_slow_one() -> None:
    sizes = {2: (200, 8.0), 3: (20, 480.0), 4: (200, 8.2)}
    limit = limit_of(executing(4, sizes, cold_share=0.6, cold_batches=(3,)))
    assert limit is not None
    assert limit.code == "server-cold"
    untold = limit_of(changed(executing(4, sizes), **{"server.cold": Cold(None, (2, 3, 4))}))
    assert untold is not None
    assert untold.code != "slow-shape"


SIZES = dict[int, tuple[int, float]]
LIMITED = Limit("server-queue", "requests waited", "More instances.")


@pytest.mark.parametrize(
    ("sizes", "slow"),
    [
        # three times what the slower of both neighbours takes
        ({2: (200, 8.0), 3: (200, 24.6), 4: (200, 8.2)}, 3),
        ({2: (200, 8.0), 3: (200, 24.5), 4: (200, 8.2)}, None),
        ({2: (200, 8.2), 3: (200, 24.5), 4: (200, 8.0)}, None),
        # of the larger ones the fastest is the neighbour, of the smaller ones the next
        ({1: (200, 2.0), 2: (200, 8.0), 3: (200, 30.0), 4: (200, 29.0), 8: (200, 9.0)}, 3),
        # in proportion to a smaller one alone, and as long as a larger one alone
        ({2: (200, 8.0), 8: (200, 96.0)}, 8),
        ({2: (200, 8.0), 8: (200, 95.9)}, None),
        ({3: (200, 24.0), 4: (200, 8.0)}, 3),
        ({3: (200, 23.9), 4: (200, 8.0)}, None),
        ({3: (200, 480.0)}, None),
        # a tenth of all execution time, and five executions
        ({2: (450, 8.0), 3: (10, 80.0), 4: (450, 8.0)}, 3),
        ({2: (450, 8.0), 3: (10, 80.0), 4: (451, 8.0)}, None),
        ({2: (20, 8.0), 3: (5, 80.0), 4: (20, 8.0)}, 3),
        ({2: (20, 8.0), 3: (4, 480.0), 4: (20, 8.0)}, None),
        # of several the one that takes most of the time
        ({1: (100, 8.0), 2: (9, 100.0), 4: (100, 8.0), 5: (5, 200.0), 8: (100, 8.0)}, 5),
    ],
)
def test_which_size_is_slow(sizes: SIZES, slow: int | None) -> None:
    limit = slow_shape(executing(4, sizes))
    assert (limit and limit.evidence.partition(" took ")[0]) == (
        slow and f"executions of {slow} image{'s' if slow > 1 else ''}"
    )


def test_a_slow_size_matters_to_a_server_that_is_full_or_has_most_of_the_time() -> None:
    sizes = {2: (200, 8.0), 3: (20, 480.0), 4: (200, 8.2)}
    shares = ((0.8, 0.1), (0.79, 0.5), (0.79, 0.49), (None, 0.5))
    runs = [
        at_server(0, 100 * share, 100, server_busy=busy, **{"server.batches": taking(sizes)})
        for busy, share in shares
    ]
    assert [bool(slow_shape(run)) for run in runs] == [True, True, False, True]


def test_a_slow_size_among_those_of_other_cells() -> None:
    run = executing(1, {3: (90, 480.0)})
    others = taking({2: (90, 8.0), 3: (90, 8.0), 4: (90, 8.2)})
    limit = slow_shape(run, others)
    assert limit is not None
    assert limit.evidence == (
        "executions of 3 images took 480 ms, those of 2 and 4 8.0 and 8.2 ms; "
        "they were 100 % of all execution time"
    )
    # a device at its idle clocks is slow at whatever one user asks for
    assert slow_shape(run, taking({4: (90, 8.2)})) is None
    assert slow_shape(run, taking({2: (90, 8.0)})) is not None


@pytest.mark.parametrize(
    ("sizes", "base_ms", "each_ms", "beyond_ms"),
    [
        ({1: (10, 5.0), 4: (10, 8.0), 16: (10, 20.0)}, 4.0, 1.0, 1.0),
        # weighed by counts: most are of one image
        ({1: (30, 5.0), 4: (10, 8.0), 16: (5, 10.0)}, 5.0653, 0.34708, 0.34708),
        # as short as they can be of the larger ones
        ({1: (10, 10.0), 16: (10, 8.0)}, 9.0, 0.0, 0.0),
        # in the last part it takes longer for each, told from a size that is not too near
        ({1: (10, 8.0), 3: (10, 8.0), 4: (10, 12.0)}, 6.2857, 1.1429, 4.0),
        ({1: (10, 8.0), 4: (10, 8.0), 5: (10, 12.0)}, 6.7692, 0.76923, 1.0),
        # a slow size is none of the curve
        ({1: (10, 5.0), 3: (10, 480.0), 4: (10, 8.0), 16: (10, 20.0)}, 4.0, 1.0, 1.0),
        # twice the size, at four fifths of the time for an image
        ({1: (10, 10.0), 2: (10, 16.0)}, 4.0, 6.0, 6.0),
        # no execution takes less than nothing, however few images it has
        ({1: (10, 5.0), 4: (10, 8.0), 16: (10, 64.0)}, 0.0, 11 / 3, 14 / 3),
    ],
)
def test_the_time_of_an_execution_by_its_size(
    sizes: SIZES, base_ms: float, each_ms: float, beyond_ms: float
) -> None:
    fit = fit_of(taking(sizes))
    assert fit is not None
    found = (fit.base_ns, fit.each_ns, fit.beyond_ns)
    assert found == pytest.approx((base_ms * MS, each_ms * MS, beyond_ms * MS), rel=1e-3, abs=1)
    assert (fit.largest, fit.largest_ns) == (max(sizes), sizes[max(sizes)][1] * MS)
    longest_ms = max(base_ms + 32 * each_ms, sizes[max(sizes)][1] + beyond_ms * (32 - max(sizes)))
    assert fit.time_ns(32) == pytest.approx(longest_ms * MS, rel=1e-3)


@pytest.mark.parametrize(
    "sizes", [{}, {1: (10, 5.0)}, {6: (10, 10.0), 11: (10, 10.0)}, {6: (10, 10.0), 12: (10, 16.1)}]
)
def test_sizes_that_tell_no_curve(sizes: SIZES) -> None:
    assert fit_of(taking(sizes)) is None


def test_executions_of_one_server_are_taken_together() -> None:
    """Sizes that were cold in a run are left out of it, and those that were seldom executed of all."""
    sizes = taking({1: (3, 8.0), 2: (4, 8.0), 4: (20, 9.0), 8: (20, 0.0)})
    cold = {"server.cold": Cold(0.01, (4,)), "cell": "other", "level": 9}
    runs = [a_run(**{"server.batches": sizes} | more) for more in ({}, cold)]
    assert pooled(runs) == {server_of(runs[0]): taking({1: (6, 8.0), 2: (8, 8.0), 4: (20, 9.0)})}


@pytest.mark.parametrize(
    "other",
    [
        {"endpoint": "b-http"},
        {"shares": "triton"},
        {"backend": "onnx"},
        {"model": "clip"},
        {"instances": 2},
        {"serving": {"instances": 2}},
    ],
)
def test_executions_of_other_servers_models_and_settings_are_apart(other: dict[str, Any]) -> None:
    assert server_of(a_run()) != server_of(a_run(**other))
    shared = [a_run(endpoint=name, shares="triton", model="clip") for name in ("a-http", "a-grpc")]
    assert server_of(shared[0]) == server_of(shared[1])


def test_a_slow_size_is_not_what_limits_a_link() -> None:
    run = executing(4, {2: (200, 8.0), 3: (20, 480.0), 4: (200, 8.2)})
    told = [
        of_batches(changed(run, limit=replace(LIMITED, code=code)), {}) for code in ("link", *CAN_BE_SLOW)
    ]
    assert [limit and limit.code for limit in told] == [None, *["slow-shape"] * 3]


def filled(sizes: SIZES, users: float = 16.0, **changes: Any) -> Limit | None:
    """What they say of the limit of a run whose server is full and has a queue."""
    known: dict[str, Any] = {"serving": ONE, "server_busy": 0.97, "level": users, "in_flight": users}
    known |= {"measure_ns": None, "server.batches": taking(sizes), "executed_batch": None, "limit": LIMITED}
    run = at_server(20, 10, 40, **known | changes)
    return of_batches(run, taking(sizes))


def test_a_run_in_which_other_things_were_slow_promises_nothing_of_full_batches() -> None:
    """Its own executions of 8 took twice as long as those of the same size at other levels."""
    quiet = executing(4, {1: (200, 10.0), 8: (400, 45.0), 32: (200, 180.0)})
    disturbed = executing(16, {8: (30, 90.0)})
    fit = fit_of(pooled([quiet, disturbed])[server_of(quiet)])
    assert fit is not None
    assert 32 / fit.time_ns(32) == pytest.approx(8 / fit.time_ns(8), rel=0.1)
    assert [limit.code for limit in limits(quiet, disturbed)] != ["batches-not-full"] * 2
    assert limits(disturbed, quiet)[0].code != "batches-not-full"


@pytest.mark.parametrize(
    ("sizes", "changes", "said"),
    [
        # at least 15 % more, and no further than twice the largest size
        ({1: (5, 8.0), 8: (95, 9.0)}, {}, "with 16 images they would give 1.85 times as many a second"),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"serving": ONE | {"max_batch": 12}}, "with 12 images they would give"),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"serving": ONE | {"max_batch": 8}}, ""),
        ({1: (5, 8.0), 16: (95, 12.0)}, {"serving": ONE | {"max_batch": 20}}, "with 20 images they would"),
        ({1: (5, 8.0), 16: (95, 12.0)}, {"serving": ONE | {"max_batch": 18}}, ""),
        ({1: (5, 8.0), 8: (95, 8.8)}, {}, "and took 8.8 ms whatever their size; with"),
        ({1: (5, 8.0), 8: (95, 8.9)}, {}, "and took 8.0 ms with 1 image and 8.9 with 8; with"),
        ({1: (5, 8.0), 8: (95, 9.0)}, {}, "executions had 7.65 of at most 32 images and took"),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"executed_batch": 4.0}, "executions had 4.00 of at most 32 images"),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"server_busy": None}, ""),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"serving": ONE | {"batching": None}}, ""),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"limit": Limit("link", "full", "A faster one.")}, ""),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"limit": None}, ""),
        ({8: (5, 2**23 / MS), 22: (30, 2**23 / MS)}, {"serving": ONE | {"max_batch": 23}}, "give 1.15 tim"),
        ({1: (5, 8.0), 8: (95, 9.0)}, {"server.batches": {}}, ""),
    ],
)
def test_what_full_batches_would_give(sizes: SIZES, changes: dict[str, Any], said: str) -> None:
    limit = filled(sizes, **changes)
    assert (limit.code if limit else "") == ("batches-not-full" if said else "")
    assert said in (limit.evidence if limit else "")


@pytest.mark.parametrize(
    ("users", "changes", "code", "said"),
    [
        # so many as are under way share an execution
        (6.0, {}, "batching-off", "with 6 images they would give"),
        (3.0, {"batch": 2}, "batching-off", "with 6 images they would give"),
        (12.0, {"serving": {"instances": 2}}, "batching-off", "with 6 images they would give"),
        (60.0, {}, "batching-off", "with 16 images they would give"),
        (60.0, {"serving": {"max_batch": 12}}, "batching-off", "with 12 images they would give"),
        (2.0, {}, "batching-off", "with 2 images they would give"),
        (1.0, {"server.batches": {1: Executed(95, 95 * 12 * MS)}}, "", ""),
        (60.0, {"load": "open", "in_flight": None, "batch": 2}, "", ""),
        (60.0, {"serving": {"max_batch": None}}, "", ""),
        (60.0, {"limit": Limit("server-compute", "compute took", "A faster one.")}, "", ""),
        (60.0, {"server_busy": None}, "", ""),
        (60.0, {"serving": {"batching": None}}, "", ""),
    ],
)
def test_what_sharing_executions_would_give(
    users: float, changes: dict[str, Any], code: str, said: str
) -> None:
    serving = ONE | {"batching": False} | changes.get("serving", {})
    limit = filled({1: (95, 8.0), 8: (5, 9.0)}, users, **changes | {"serving": serving})
    assert (limit.code if limit else "") == code
    assert said in (limit.evidence if limit else "")


USERS, LONGER, RATE = "Add users (or larger --batches)", ", or a longer batching delay)", "Raise the rate"


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        # three quarters of the images under way are in an execution
        ({"executed_batch": 12.0}, f"{USERS}: the executions have room for more images."),
        ({"executed_batch": 11.9, "serving": ONE | {"instances": None}}, f"{USERS[:-1]}{LONGER}: "),
        ({"level": 1, "in_flight": 1.0}, f"{USERS[:-1]}{LONGER}: "),
        ({"executed_batch": 12.0, "batch": 2}, "Add users (or larger --batches, or a longer batching delay)"),
        ({"executed_batch": 12.0, "batch": 2, "serving": ONE | {"instances": 2}}, USERS),
        # 1,600 images a second that wait for 20 ms are 32 in the queue
        ({"images_per_s": 1_600.0}, FILL),
        ({"images_per_s": 1_599.0}, "Add users"),
        ({"images_per_s": 1_600.0, "serving": ONE | {"instances": 2}}, "Add users"),
        ({"images_per_s": 3_200.0, "serving": ONE | {"instances": 2}}, FILL),
        ({"images_per_s": 1_600.0, "load": "open", "serving": ONE | {"instances": None}}, FILL),
        ({"images_per_s": None, "server_queue_ns": 40_000 * MS}, "Add users"),
        ({"load": "open"}, "Raise the rate: the executions have room for more images."),
        ({"load": "open", "replay": "day"}, "Replay the trace faster (--replay-speed): the executions"),
        ({"batch_mix": "1:0.5,4:0.5"}, "Add users (or larger batches in --batch-mix, or"),
        ({"serving": ONE | {"batching_delay_ns": 20 * MS}}, "Add users or use larger --batches, or lower th"),
    ],
)
def test_how_executions_get_more_images(changes: dict[str, Any], advice: str) -> None:
    limit = filled({1: (5, 8.0), 8: (95, 9.0)}, **changes)
    assert limit is not None
    assert limit.advice.startswith(advice)
    waited = "; requests waited 20.0 of 40.0 ms for a batch to fill"
    assert limit.evidence.endswith(waited) is (
        "batching_delay_ns" in str(changes.get("serving")) and "lower" in advice
    )
