"""Whether a run's readings are of one server that ran on, of one that restarted, or of several in turn."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Literal, NamedTuple

from reports.fold.windows import Windows
from reports.format import digits

FEW = 5
"""Requests: of an ensemble they are counted by several models, which are not read at quite the same time."""
FRESH_TIMES = 3.0
"""Of what is counted between two readings: a server that has just started cannot have counted more."""
MOST_COUNTED, SPARE = 1.1, 50
"""Of what was sent, and requests that were under way at the first reading: one server counts no more."""
ENOUGH_GROWTHS = 3
"""Readings in a row behind a usual growth; with fewer, all that was sent bounds it."""
BUSIEST = 1.05
"""Of its instances' time, beyond one execution that had begun before: more is not of so many instances."""
MOST_UNCOUNTED = 0.05
"""Of the successes: with so few missing, what one server counted is what all did."""
CLOCKS_S = 60.0
"""By which the clocks of two hosts may differ: what started longer before a phase did not start within it."""
Fate = Literal["one", "restarted", "several"]


class Seen(NamedTuple):
    """One reading: the requests counted so far, None where untold; and who answered, empty where untold."""

    requests: int | None
    identity: str = ""


def fate(
    readings: Sequence[Seen],
    sent: int,
    unread: int = 0,
    went_back: bool = False,
    began_s: float | None = None,
) -> Fate:
    """What became of the server between the first reading and the last, in the order of time.

    `sent` requests were sent between them, `unread` readings between them failed, and `went_back` says that
    some counter was lower at the end. `began_s` is when that was, in seconds since 1970.
    Who answered is asked first: an identity that comes back is no restart, nor is one that is older.
    Where a server begins anew, its count begins near 0, and all counts together are at most what was sent.
    Counts of several servers in turn come to more, since each step from one to another counts their past.
    """
    names = [name for name, _ in groupby(one.identity for one in readings if one.identity)]
    if len(names) > len(set(names)) or _is_older(names, began_s):
        return "several"
    pairs = list(pairwise(one for one in readings if one.requests is not None))
    anew = [later.requests or 0 for earlier, later in pairs if _is_another(earlier, later)]
    if not anew and len(names) < 2:
        if not went_back or len(names) == 1:
            return "restarted" if went_back else "one"
        # Some other counter fell: somewhere between the first reading and the last another one answered. If
        # it had begun anew, readings so close together would have shown that requests fell, too.
        pairs, anew = pairs if len(pairs) >= ENOUGH_GROWTHS else [], [readings[-1].requests or 0]
    grown = [
        (later.requests or 0) - (earlier.requests or 0)
        for earlier, later in pairs
        if not _is_another(earlier, later)
    ]
    fresh = all(count <= _most_at_once(grown, sent, len(anew)) * (1 + unread) for count in anew)
    return "restarted" if fresh and sum(grown) + sum(anew) <= MOST_COUNTED * sent + SPARE else "several"


def _is_older(names: Sequence[str], began_s: float | None) -> bool:
    """Whether one of them had started before the one that it follows, or before the first reading."""
    starts = [start for name in names if (start := started_s(name)) is not None]
    if any(later <= earlier for earlier, later in pairwise(starts)):
        return True
    return began_s is not None and any(start < began_s - CLOCKS_S for start in starts[1:])


def started_s(identity: str) -> float | None:
    """Seconds since 1970 at which a server started, by its identity, `host/seconds`; None without them."""
    _, slash, told = identity.rpartition("/")
    try:
        return float(told) if slash else None
    except ValueError:
        return None


def _is_another(earlier: Seen, later: Seen) -> bool:
    """Whether two readings in a row are not of one server that ran on."""
    if earlier.identity and later.identity:
        return earlier.identity != later.identity
    return (earlier.requests or 0) - (later.requests or 0) > FEW


def _most_at_once(grown: Sequence[int], sent: int, others: int) -> float:
    """The most that a server can have counted since the reading before."""
    if len(grown) < ENOUGH_GROWTHS:
        return MOST_COUNTED * sent + SPARE
    return FRESH_TIMES * max(median(grown), sent / (len(grown) + others))


def said_of_several(readings: Sequence[Seen]) -> str:
    """How the readings show that they are of several servers."""
    names = list(dict.fromkeys(one.identity for one in readings if one.identity))
    if names[1:]:
        return f"{len(names)} servers answered when the counters were read ({', '.join(names[:4])})"
    return "the counters went up and down from reading to reading, as those of several servers do"


def too_few(counted: int | None, sent: Windows) -> str:
    """In words, that a server counted fewer requests than succeeded; empty where it did not.

    Those that failed or were given up may never have reached it.
    """
    if counted is None or counted >= sent.ok:
        return ""
    return (
        f"the server counted only {counted:,} of {sent.ok:,} requests that succeeded: several servers may "
        "stand behind this address, or a proxy answers some"
    )


def counts_a_part(counted: int | None, sent: Windows) -> bool:
    """Whether a server counted so few of the successes that others must have served the rest."""
    return counted is not None and counted < (1 - MOST_UNCOUNTED) * sent.ok


def too_busy(busy: float | None, execution_share: float, instances: int | None) -> str:
    """In words, that executions took more time than there was; empty where they did not.

    `execution_share` is one execution's part of the time: it may have begun before the first reading.
    """
    if busy is None or busy <= BUSIEST + execution_share:
        return ""
    held = "its one instance" if instances == 1 else f"its {instances or 0:,} instances"
    return (
        f"executions took {digits(busy)} times the time of {held}: several servers may stand behind this "
        "address, or it has more instances than it says"
    )
