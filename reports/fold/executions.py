"""What a server executed, by batch size: for how long, and what went into sizes it met for the first time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEAR_TIMES, DEAR_ON_AVERAGE, LEAST_DEAR_NS = 3.0, 1.5, 10_000_000
"""When a new size was dear: its first execution, if it alone took all excess, and the mean of all, by how
many times what is predicted; and an excess that no hiccup of a scheduler makes."""


@dataclass(frozen=True)
class Executed:
    """How many executions, and their time together."""

    count: int
    time_ns: int

    @property
    def mean_ns(self) -> float:
        """Of one execution; there must be one."""
        return self.time_ns / self.count


Batches = Mapping[int, Executed]
NOTHING = Executed(0, 0)


@dataclass(frozen=True)
class Cold:
    """The share of execution time that went into new batch sizes beyond what they cost when warm.

    `batches` are the sizes it went into. `share` is None where the server tells nothing of sizes, and where
    there is no warm size to predict from; then `batches` are all the new ones.
    """

    share: float | None = None
    batches: tuple[int, ...] = ()


def batches_of(counters: Mapping[str, Any]) -> Batches | None:
    """Executions by size since the server's start; None where it does not tell."""
    stated = counters.get("batches")
    return None if stated is None else {int(size): Executed(*counted) for size, counted in stated.items()}


def growth(before: Batches, after: Batches) -> Batches:
    """What was executed between two readings; sizes that were not are left out."""
    grown = {size: _between(before.get(size, NOTHING), now) for size, now in after.items()}
    return {size: done for size, done in grown.items() if done.count}


def went_backwards(before: Batches, after: Batches) -> bool:
    """Whether some size was executed less often at the later reading, as after a restart."""
    return any(after.get(size, NOTHING).count < old.count for size, old in before.items())


def cold(before: Batches, grown: Batches) -> Cold:
    """What of the growth since `before` went into sizes that had never been executed.

    The prediction comes from sizes that were warm and executed in the same phase; without any, from what
    others had cost before it, which holds their own first executions and so errs towards saying nothing.
    """
    warmed = {size: done for size, done in before.items() if done.count}
    new = {size: done for size, done in grown.items() if size not in warmed}
    warm = {size: done for size, done in grown.items() if size in warmed} or warmed
    time_ns = sum(done.time_ns for done in grown.values())
    if (new and not warm) or not time_ns:
        return Cold(None, tuple(sorted(new)))
    excess = {size: excess_ns(done, predicted_ns(size, warm)) for size, done in new.items()}
    return Cold(sum(excess.values()) / time_ns, tuple(sorted(size for size in excess if excess[size])))


def predicted_ns(size: int, warm: Batches) -> float:
    """The most that a warm execution of a size should take, by the dearest of the sizes that were warm.

    A larger size than a warm one takes at most as much longer as it is larger, a smaller one no longer.
    """
    return max(done.mean_ns * max(1.0, size / known) for known, done in warm.items())


def excess_ns(done: Executed, predicted: float) -> float:
    """What the executions of a new size took beyond the prediction; 0 where that is nothing remarkable.

    Counters cannot tell the first execution from those after it. So all excess is taken as the first one's:
    it is dear where that makes it 3 times as long as predicted. Of a size that was often executed a slightly
    low prediction could add up to that too, so the mean must be half as long again.
    """
    excess = done.time_ns - done.count * predicted
    first = excess > max((DEAR_TIMES - 1) * predicted, LEAST_DEAR_NS)
    return excess if first and done.mean_ns > DEAR_ON_AVERAGE * predicted else 0.0


def _between(old: Executed, now: Executed) -> Executed:
    return Executed(now.count - old.count, now.time_ns - old.time_ns)
