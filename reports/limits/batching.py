"""Batches as the limit: fuller ones would cost little more, requests do not share any, or one size is slow.

The evidence is how long executions of each size took. One level of load executes few sizes, so those of all
runs of the same model and settings are taken together.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from reports.fold.server import NOTHING, Batches, Executed
from reports.format import digits, listed, ms, multiple, plural
from reports.limit import Limit
from reports.limits.server import held_back
from reports.limits.shares import (
    MOST,
    at_least,
    in_flight,
    larger_batches,
    more_arrivals,
    saturated,
    server_share,
    service_ns,
)
from reports.summary.batch import images_per_request
from reports.summary.summary import Summary

LEAST_EXECUTIONS = 5
"""Of one size: of fewer, one that was held up is most of their mean."""
SLOW_TIMES = 3.0
"""What other sizes take: sizes that a kernel pads to the next larger one cost up to twice as much."""
SLOW_SHARE = 0.1
"""Of all execution time: a slow size that is seldom executed is not what to fix first."""
FALLS, APART = 0.8, 2.0
"""Time for an image at the largest known size over that at the smallest, and how far apart these must be:
means of sizes nearer to each other differ by chance as much."""
WORTH = 0.15
"""What full batches must promise to add to the images a second: the same as what another level must add."""
REACH = 2.0
"""Times the largest known size: beyond it nothing is known of a device that fills up."""
TAIL = 0.75
"""Of the largest known size: what it costs more than one as small tells whether the device has filled up. The
means of nearer ones differ by chance as much."""
FLAT = 1.1
"""The longest mean over the shortest of executions that take as long whatever their size."""
JOINED = 0.75
"""Of the images under way that an execution has: below it, others arrive while it is executed."""
NS_PER_S = 1e9
FILL = (
    "Let batches fill, since the requests for a full one are waiting: see preferred_batch_size, and set a "
    "longer batching delay."
)
OF_INSTANCES = ("server-queue", "server-compute")
"""The limits of which full batches may be a better account."""
CAN_BE_SLOW = (*OF_INSTANCES, "offered-load")


@dataclass(frozen=True)
class FittedTime:
    """The time of an execution as `base_ns` and `each_ns` for every image, from sizes up to the `largest`.

    Where a device fills up on the way, a straight line is too low: an execution takes no less than the
    largest, which took `largest_ns`, and `beyond_ns` for every image more.
    """

    base_ns: float
    each_ns: float
    largest: int
    largest_ns: float
    beyond_ns: float

    def time_ns(self, size: float) -> float:
        """Of an execution of a size."""
        beyond_ns = self.largest_ns + self.beyond_ns * (size - self.largest)
        return max(self.base_ns + self.each_ns * size, beyond_ns)


def server_of(run: Summary) -> Hashable:
    """What runs must have in common for their executions to be compared: server, model and its settings."""
    instances = run.serving.instances if run.serving else None
    return run.shares or run.endpoint, run.backend, run.model or run.endpoint, run.instances, instances


def pooled(runs: Iterable[Summary]) -> dict[Hashable, Batches]:
    """The executions by size of all runs of each server; first executions of a size are left out."""
    found: dict[Hashable, dict[int, Executed]] = {}
    for run in runs:
        sizes = found.setdefault(server_of(run), {})
        for size, done in _warm(run).items():
            before = sizes.get(size, NOTHING)
            sizes[size] = Executed(before.count + done.count, before.time_ns + done.time_ns)
    return {server: known(sizes) for server, sizes in found.items()}


def _warm(run: Summary) -> Batches:
    return {size: done for size, done in run.server.batches.items() if size not in run.server.cold.batches}


def known(sizes: Batches) -> Batches:
    """Those that were executed often enough for their mean to say something."""
    return {size: done for size, done in sizes.items() if done.count >= LEAST_EXECUTIONS and done.time_ns > 0}


def of_batches(run: Summary, curve: Batches) -> Limit | None:
    """What the executions of all runs of the server say of this one's limit; None where that stands."""
    code = run.limit.code if run.limit else ""
    if code in CAN_BE_SLOW and (slow := slow_shape(run, curve)):
        return slow
    if code not in OF_INSTANCES:
        return None
    return batching_off(run, curve) or batches_not_full(run, curve)


def slow_shape(run: Summary, curve: Batches | None = None) -> Limit | None:
    """Executions of one size take several times as long as those of its neighbours, and much of the time.

    `curve` has the sizes of other runs, too. Where it alone has a larger size, it must have a smaller one as
    well: a device under little load may be slow at all sizes that such a load executes.
    """
    own = known(_warm(run))
    curve = own if curve is None else {**curve, **own}
    whole_ns = sum(done.time_ns for done in run.server.batches.values())
    slow = [size for size, done in own.items() if done.time_ns >= SLOW_SHARE * whole_ns]
    slow = [size for size in slow if _is_slow(size, curve, own)]
    if not slow or not (saturated(run) or at_least(server_share(run), MOST)):
        return None
    size = max(slow, key=lambda each: own[each].time_ns)
    below, above = neighbours_of(size, curve)
    beside = [other for other in (below, above) if other]
    near, took = listed([f"{it:,}" for it in beside]), listed([ms(curve[it].mean_ns) for it in beside])
    said = f"executions of {plural(size, 'image')} took {ms(own[size].mean_ns)} ms, those of {near} {took} ms"
    share = f"they were {digits(100 * own[size].time_ns / whole_ns)} % of all execution time"
    advice = (
        "Avoid this size of a batch (by --batches, or preferred_batch_size), or profile the model at it "
        "and rebuild its engine for it."
    )
    return Limit("slow-shape", f"{said}; {share}", advice)


def neighbours_of(size: int, curve: Batches) -> tuple[int | None, int | None]:
    """The next smaller size, and of the larger ones the fastest: the next may be slow as well."""
    below = max((other for other in curve if other < size), default=None)
    above = min((other for other in curve if other > size), key=lambda it: curve[it].mean_ns, default=None)
    return below, above


def _is_slow(size: int, curve: Batches, own: Batches) -> bool:
    below, above = neighbours_of(size, curve)
    if below and above:
        allowed_ns = max(curve[below].mean_ns, curve[above].mean_ns)
    elif below:
        allowed_ns = curve[below].mean_ns * size / below
    elif above and above in own:
        allowed_ns = curve[above].mean_ns
    else:
        return False
    return curve[size].mean_ns >= SLOW_TIMES * allowed_ns


def fit_of(curve: Batches) -> FittedTime | None:
    """The least squares of the means, weighted by counts; None where the time for an image does not fall."""
    curve = {size: done for size, done in curve.items() if not _is_slow(size, curve, curve)}
    if not curve or max(curve) < APART * min(curve):
        return None
    first, last = (curve[size].mean_ns / size for size in (min(curve), max(curve)))
    if last > FALLS * first:
        return None
    weight = sum(done.count for done in curve.values())
    middle = sum(size * done.count for size, done in curve.items()) / weight
    mean_ns = sum(done.time_ns for done in curve.values()) / weight
    spread = sum(done.count * (size - middle) ** 2 for size, done in curve.items())
    joint = sum(done.count * (size - middle) * (done.mean_ns - mean_ns) for size, done in curve.items())
    each_ns = min(max(0.0, joint / spread), mean_ns / middle)
    beyond_ns = max(each_ns, _last_slope_ns(curve))
    return FittedTime(mean_ns - each_ns * middle, each_ns, max(curve), curve[max(curve)].mean_ns, beyond_ns)


def _last_slope_ns(curve: Batches) -> float:
    """For every image more, between the largest size and the next that is not too near to it."""
    largest = max(curve)
    below = max(size for size in curve if size <= TAIL * largest)
    return (curve[largest].mean_ns - curve[below].mean_ns) / (largest - below)


def batches_not_full(run: Summary, curve: Batches) -> Limit | None:
    """Requests wait for instances or for a batch to fill, and fuller batches would cost little more time."""
    if not run.serving or not run.serving.batching or run.server.busy is None:
        return None
    most = run.serving.max_batch or 0
    said = _promised(run, curve, most)
    if not said:
        return None
    mean = digits(run.server.executed_batch or _images(run.server.batches) / _count(run.server.batches))
    evidence = f"executions had {mean} of at most {most:,} images and {said}"
    if held_back(run):
        waited = f"requests waited {ms(run.server.queue_ns)} of {ms(service_ns(run))} ms for a batch to fill"
        evidence = f"{evidence}; {waited}"
    return Limit("batches-not-full", evidence, _more_images(run))


def batching_off(run: Summary, curve: Batches) -> Limit | None:
    """Requests wait for an instance one by one, though it could execute several at little cost."""
    serving, code = run.serving, run.limit.code if run.limit else ""
    if not serving or serving.batching is not False or run.server.busy is None or code != "server-queue":
        return None
    most = min(serving.max_batch or 0, under_way(run))
    said = _promised(run, curve, most)
    if not said:
        return None
    waited = f"requests waited {ms(run.server.queue_ns)} of {ms(service_ns(run))} ms"
    may = f"the model takes up to {serving.max_batch:,} images and does not batch requests"
    advice = (
        "Turn on dynamic_batching in the model's config.pbtxt, so that waiting requests share executions; "
        f"or use {larger_batches(run)}."
    )
    return Limit("batching-off", f"{waited}, {may}; executions {said}", advice)


def _full_one_waits(run: Summary) -> bool:
    """Whether the server's queue holds the images of a full batch for each instance, by Little's law."""
    instances = (run.serving.instances if run.serving else None) or 1
    most = (run.serving.max_batch if run.serving else None) or 0
    waiting = (run.counts.images_per_s or 0.0) * (run.server.queue_ns or 0.0) / NS_PER_S
    return 0 < most * instances <= waiting


def under_way(run: Summary) -> float:
    """Images that are under way for each instance, on average."""
    instances = (run.serving.instances if run.serving else None) or 1
    return (in_flight(run) or 0.0) * images_per_request(run) / instances


def _promised(run: Summary, curve: Batches, most: float) -> str:
    """What executions took and what fuller ones would give, in words; empty where that is not worth it.

    Both sizes by the fit: a run in which other things were slow promises no more for that.
    """
    fit, own = fit_of(curve), run.server.batches
    if fit is None or not own or most <= 1:
        return ""
    full = min(most, REACH * fit.largest)
    time_ns = sum(done.count * fit.time_ns(size) for size, done in own.items())
    gain = full / fit.time_ns(full) * time_ns / _images(own)
    if gain < 1 + WORTH:
        return ""
    more = f"with {round(full):,} images they would give {multiple(gain)} times as many a second"
    return f"{_took(curve, own)}; {more}"


def _took(curve: Batches, own: Batches) -> str:
    """Flat or by the smallest and the largest size."""
    least, most = min(curve), max(curve)
    means = [done.mean_ns for done in curve.values()]
    if max(means) <= FLAT * min(means):
        return f"took {ms(sum(done.time_ns for done in own.values()) / _count(own))} ms whatever their size"
    took = f"took {ms(curve[least].mean_ns)} ms with {plural(least, 'image')}"
    return f"{took} and {ms(curve[most].mean_ns)} with {most:,}"


def _images(sizes: Batches) -> int:
    return sum(size * done.count for size, done in sizes.items())


def _count(sizes: Batches) -> int:
    return sum(done.count for done in sizes.values())


def _more_images(run: Summary) -> str:
    if _full_one_waits(run):
        return FILL
    if run.load != "closed":
        return f"{more_arrivals(run)}: the executions have room for more images."
    if held_back(run):
        return f"Add users or use {larger_batches(run)}, or lower the batching delay (--queue-delay-us)."
    longer = (run.server.executed_batch or 0.0) < JOINED * under_way(run)
    more = f"{larger_batches(run)}, or a longer batching delay" if longer else larger_batches(run)
    return f"Add users (or {more}): the executions have room for more images."
