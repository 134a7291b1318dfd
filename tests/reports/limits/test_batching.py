"""Batches as the limit: flat executions that are not full, batching that is off, and one slow size."""

from typing import Any

import pytest

from reports.fold.server import Batches, Cold, Executed
from reports.fold.windows import Offered
from reports.limit import Limit
from reports.limits.batching import fit_of
from reports.limits.neighbours import among_neighbours
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, at_server
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
    assert limit.advice.startswith("Add users (or a larger --batch")
    assert "device" not in limit.advice
    assert "instances" not in limit.advice


def test_a_gpu_that_always_runs_some_kernel_is_not_full_for_that() -> None:
    """Its utilisation is the share of time with any kernel, however small."""
    [limit] = limits(flat(4, 4, gpu_util_pct=100.0))
    assert limit.code == "batches-not-full"


def test_the_three_levels_together_say_what_more_users_gained() -> None:
    first, second, third = limits(flat(4, 4), flat(16, 8), flat(64, 25))
    assert {limit.code for limit in (first, second, third)} == {"batches-not-full"}
    assert first.evidence.endswith("; 16 users got 100 % more images/s than 4")
    assert second.evidence.endswith("; 64 users got 212 % more images/s than 16")
    assert "users got" not in third.evidence


def test_batches_that_fewer_than_are_under_way_join_may_wait_longer() -> None:
    [limit] = limits(flat(16, 8))
    assert limit.advice == (
        "Add users (or a larger --batch, or a longer batching delay): the executions have room for more "
        "images."
    )
    [joined] = limits(flat(4, 4))
    assert "longer batching delay" not in joined.advice


def test_one_user_sees_a_single_size_and_other_levels_have_the_rest() -> None:
    alone = executing(1, {1: (900, FLAT_MS)}, front_ms=0.5)
    assert [limit.code for limit in limits(alone)] == ["server-compute"]
    both = limits(alone, executing(16, {8: (600, FLAT_MS)}))
    assert [limit.code for limit in both] == ["batches-not-full", "batches-not-full"]
    assert "executions had 1.00 of at most 32 images" in both[0].evidence


@pytest.mark.parametrize(
    "changes",
    [
        {"server.batches": taking({1: (10, 8.0), 8: (600, 64.0)})},  # no cheaper by the image
        {"server.batches": taking({1: (4, 8.0), 8: (600, 8.0)})},  # seldom seen
        {"server.batches": taking({6: (100, 8.0), 8: (600, 8.0)})},  # too near each other
        {"server.batches": {}},
        {"serving": {"instances": 1, "max_batch": 8, "batching": True}},  # full
        {"serving": {"instances": 1, "max_batch": None, "batching": True}},
        {"serving": {"instances": 1, "max_batch": 32, "batching": None}},
    ],
)
def test_without_a_curve_or_room_the_server_stays_the_limit(changes: dict[str, Any]) -> None:
    [limit] = limits(flat(16, 8, **changes))
    assert limit.code in ("server-queue", "server-compute")


def test_where_a_full_batch_waits_the_batcher_does_not_take_it() -> None:
    [limit] = limits(flat(64, 8))
    assert limit.code == "batches-not-full"
    assert limit.advice.startswith("Let batches fill, since the requests for a full one are waiting")
    first, _ = limits(flat(64, 8), flat(128, 16))
    assert first.advice.startswith("Add users: the next level of this study got more images/s. Let batches")


def test_where_more_users_brought_nothing_batches_are_no_matter() -> None:
    first, _ = limits(flat(16, 8), executing(32, {8: (600, FLAT_MS)}))
    assert first.code == "server-compute"


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
        first.advice == "Add users or use a larger --batch, or lower the batching delay (--queue-delay-us)."
    )


def test_arrivals_fill_batches_at_a_higher_rate() -> None:
    open_load = {"load": "open", "arrivals": "poisson", "due": 1_000, "offered": Offered(950.0, 1, 5.0)}
    [limit] = limits(flat(16, 8, **open_load | {"level": 950.0}))
    assert limit.code == "batches-not-full"
    assert limit.advice == "Raise the rate: the executions have room for more images."


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


KNEE = {1: (625, 8.0), 2: (625, 8.0), 4: (625, 8.0), 8: (312, 16.0)}


@pytest.mark.parametrize(
    "sizes",
    [KNEE, {1: (625, 8.0), 3: (600, 8.0), 4: (300, 8.0), 6: (300, 12.0), 7: (50, 14.0), 8: (312, 16.0)}],
)
def test_a_device_that_fills_up_within_the_known_sizes(sizes: dict[int, tuple[int, float]]) -> None:
    """From four images on it takes as much longer as there are more: a straight line hides that."""
    fit = fit_of(taking(sizes))
    assert fit is not None
    assert fit.images_per_ns(16) == pytest.approx(0.5 / MS)
    levels = [executing(users, {users: (600, took)}) for users, took in ((1, 8.0), (2, 8.0), (4, 8.0))]
    found = limits(*levels, executing(16, {8: (312, 16.0)}))
    assert found[3].code == "server-queue"
    assert "more instances" in found[3].advice


def test_near_sizes_at_the_top_do_not_tell_a_slope() -> None:
    """Of seven and eight images a twentieth more by chance is no device that fills up."""
    fit = fit_of(taking({1: (600, 8.0), 6: (300, 8.0), 7: (300, 7.8), 8: (300, 8.2)}))
    assert fit is not None
    assert fit.images_per_ns(16) == pytest.approx(16 / (9.0 * MS))


def test_a_curve_that_rises_slowly_is_told_by_its_ends() -> None:
    first, _ = limits(executing(2, {1: (500, 8.0)}), executing(32, {16: (300, 12.0)}))
    assert first.code == "batches-not-full"
    assert "took 8.0 ms with 1 image and 12.0 with 16; with 32 images they would give" in first.evidence


def test_requests_that_do_not_share_executions() -> None:
    """Sixteen users of one image; what larger executions take is known from a cell of batch 8."""
    serving = {"instances": 1, "max_batch": 32, "batching": False}
    single = executing(16, {1: (900, 8.0)}, serving=serving)
    [alone] = limits(single)
    assert alone.code == "server-queue"
    off, larger = limits(single, executing(16, {8: (700, 9.0)}, batch=8, serving=serving))
    assert off.code == "batching-off"
    assert "the model takes up to 32 images and does not batch requests" in off.evidence
    assert "executions took 8.0 ms with 1 image and 9.0 with 8" in off.evidence
    assert off.advice.startswith("Turn on dynamic_batching")
    assert larger.code == "batching-off"


def test_batching_is_no_help_to_a_device_that_works_image_by_image() -> None:
    serving = {"instances": 1, "max_batch": 32, "batching": False}
    single = executing(16, {1: (900, 8.0)}, serving=serving)
    found = limits(single, executing(16, {8: (100, 64.0)}, batch=8, serving=serving))
    assert [limit.code for limit in found] == ["server-queue", "server-queue"]


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
    assert limit.advice.startswith("Avoid this size of a batch (another --batch, or preferred_batch_size)")


@pytest.mark.parametrize(
    "sizes",
    [
        {2: (200, 8.0), 3: (200, 20.0), 4: (200, 8.2)},  # two and a half times
        {2: (2_000, 8.0), 3: (6, 100.0), 4: (2_000, 8.2)},  # a fiftieth of the time
        {2: (20, 8.0), 3: (4, 480.0), 4: (20, 8.2)},  # four executions
        {2: (200, 8.0), 8: (200, 60.0)},  # nearly in proportion
        {3: (200, 480.0)},  # nothing to compare with
    ],
)
def test_sizes_that_are_not_slow(sizes: dict[int, tuple[int, float]]) -> None:
    limit = limit_of(executing(4, sizes))
    assert limit is not None
    assert limit.code != "slow-shape"


def test_a_slow_size_whose_neighbours_are_in_other_cells() -> None:
    cells = [executing(1, {size: (90, took)}, batch=size) for size, took in ((2, 8.0), (3, 480.0), (4, 8.2))]
    found = limits(*cells)
    assert found[1].code == "slow-shape"
    assert "slow-shape" not in (found[0].code, found[2].code)


def test_the_smallest_size_is_not_slow_by_other_cells_alone() -> None:
    """A device at its idle clocks is slow at whatever one user asks for."""
    cells = [executing(1, {1: (90, 30.0)}), executing(16, {8: (90, 8.0)})]
    assert "slow-shape" not in [limit.code for limit in limits(*cells)]


def test_a_cold_size_is_no_slow_one() -> None:
    sizes = {2: (200, 8.0), 3: (20, 480.0), 4: (200, 8.2)}
    limit = limit_of(executing(4, sizes, cold_share=0.6, cold_batches=(3,)))
    assert limit is not None
    assert limit.code == "server-cold"
    untold = limit_of(changed(executing(4, sizes), **{"server.cold": Cold(None, (2, 3, 4))}))
    assert untold is not None
    assert untold.code != "slow-shape"


def test_the_time_of_an_execution_by_its_size() -> None:
    fit = fit_of(taking({1: (10, 5.0), 4: (10, 8.0), 16: (10, 20.0)}))
    assert fit is not None
    assert (fit.base_ns, fit.each_ns) == pytest.approx((4 * MS, 1 * MS))
    assert fit.images_per_ns(32) == pytest.approx(32 / (36 * MS))
    assert fit_of(taking({1: (10, 5.0), 16: (10, 70.0)})) is None
    assert fit_of({}) is None
