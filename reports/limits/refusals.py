"""Refusals as the limit: a rate that is admitted, or a queue that is full, turns requests away.

They are causes however many requests failed: what is refused costs the server next to nothing, so that those
which were admitted are not a choice of the easy ones.
"""

from reports.caveat import Trait
from reports.fold.windows import REFUSALS
from reports.format import digits, ms
from reports.limit import UNKNOWN, Limit
from reports.limits.shares import MOST, saturated, service_ns
from reports.summary.summary import Summary

OF_RATE = ("429", "RESOURCE_EXHAUSTED")
"""Codes that mean a rate or a quota, unless the answers or the server say that a queue is full."""
REFUSED_SHARE, LEAST_REFUSED = 0.05, 10
"""Of the requests, and at least so many: fewer tell that a bound was touched, not that it holds the rate."""
MOST_OF = 0.5
"""Of the failures, or of the refusals: what most of them are, or say."""
UNCOUNTED_SHARE = 0.1
"""Of the refusals, between what succeeded and what the server counted: it did not see the others."""
UNTOLD_SHARE = 0.1
"""Of the requests, refused by whom is not known: what the successes say is then not of the whole load."""
FULL_ADVICE = (
    "Give the server more capacity (instances, a faster device, another server), or a lower load; a longer "
    "queue refuses fewer, and lets them wait instead."
)
REFUSALS_ADVICE = (
    "Look at the log of the server and of proxies before it for why they refuse, then run again."
)


def server_full(run: Summary) -> Limit | None:
    """Requests are refused since the server's queue is full: as it says itself, counts, or is seen to be."""
    refused = refusals(run)
    why = _full(run, refused) if refused else ""
    if not why:
        return None
    return Limit("server-full", "; ".join([refusals_said(run, refused), why, _admitted(run)]), FULL_ADVICE)


def rate_limited(run: Summary) -> Limit | None:
    """Requests are refused since a rate is bounded, by the server or by a proxy before it."""
    refused = refusals(run)
    if not refused or _full(run, refused):
        return None
    why = _rate(run, refused)
    if not why:
        return None
    admits = (
        "nothing"
        if not run.counts.requests_per_s
        else f"{digits(run.counts.requests_per_s)} requests a second"
    )
    advice = f"The server, or a proxy before it, admits {admits}: raise its limit, or offer less."
    return Limit("rate-limited", "; ".join([refusals_said(run, refused), why, _admitted(run)]), advice)


def refused_untold(run: Summary) -> Limit | None:
    """Many requests are refused, and neither words nor counters tell why."""
    refused, finished = refusals(run), run.counts.requests or 0
    if run.succeeded <= 0 or refused <= UNTOLD_SHARE * finished or _full(run, refused) or _rate(run, refused):
        return None
    why = f"{refusals_said(run, refused)}: by a bound on the rate or a full queue is not known"
    return Limit(UNKNOWN, why, REFUSALS_ADVICE)


def refusals(run: Summary) -> int:
    """Requests that were refused for now; 0 where they are few, or most failures are others.

    Of a run that did not end well, or had several rates, no limit is named. A request that is too large is
    never admitted, by no rate.
    """
    if run.status != "done" or run.profile or any(caveat.has(Trait.SPLITS) for caveat in run.caveats):
        return 0
    counts = run.counts
    coded = sum(counts.failure_codes.get(code, 0) for code in REFUSALS)
    refused, finished = coded - counts.refused_for.get("size", 0), counts.requests or 0
    if refused < max(LEAST_REFUSED, REFUSED_SHARE * finished) or refused < MOST_OF * (counts.failures or 0):
        return 0
    return refused


def _full(run: Summary, refused: int) -> str:
    """How a full queue shows, in words; empty where it does not. Words of a rate refute a busy server."""
    said = run.counts.refused_for
    if said.get("queue", 0) >= MOST_OF * refused:
        return f"{said['queue']:,} of the answers say that a queue is full"
    if (run.shed or 0) >= MOST_OF * refused:
        return f"the server counted {run.shed:,} that it shed"
    if saturated(run) and said.get("rate", 0) < MOST_OF * refused:
        return f"the server's instances were executing {digits(100 * (run.server.busy or 0.0))} % of the time"
    return ""


def _rate(run: Summary, refused: int) -> str:
    """How a bounded rate shows, in words; empty where it does not.

    503 means both, and with Retry-After too: then the server must be seen to have room. Without it, requests
    must have been refused before they reached the server. What its parts do not explain, such as a front end
    that is full, has no room that could be seen.
    """
    counts = run.counts
    if counts.refused_for.get("rate", 0) >= MOST_OF * refused:
        return f"{counts.refused_for['rate']:,} of the answers name a rate or a quota"
    if sum(counts.failure_codes.get(code, 0) for code in OF_RATE) >= MOST_OF * refused:
        return "that code means a rate, and nothing shows a full queue"
    before = _refused_before(run, refused)
    if run.succeeded <= 0 or not (before or (counts.retry_after or 0) >= MOST_OF * refused):
        return ""
    waited, whole = run.server.queue_ns, service_ns(run)
    if run.server.busy is None or saturated(run) or waited is None or not whole:
        return ""
    if max(waited, run.unexplained_ns or 0.0) >= MOST * whole:
        return ""
    busy = f"the server's instances were executing {digits(100 * run.server.busy)} % of the time"
    room = f"{busy} and requests waited {ms(waited)} of {ms(whole)} ms for them"
    return f"{before}; {room}" if before else room


def _refused_before(run: Summary, refused: int) -> str:
    """How it shows that something before the server refused requests, sooner than it answers; else empty."""
    counted, whole, took = run.server.requests, service_ns(run), run.failed.mean_ns
    if counted is None or abs(counted - run.succeeded) > UNCOUNTED_SHARE * refused:
        return ""
    if took is None or whole is None or took > whole:
        return ""
    return f"the server counted only {counted:,} requests: the others were refused before they reached it"


def refusals_said(run: Summary, refused: int) -> str:
    """How many of how many were refused, with which codes, and whether they said when to ask again."""
    counts = run.counts
    codes = [code for code in REFUSALS if counts.failure_codes.get(code)]
    again = ""
    if (counts.retry_after or 0) >= MOST_OF * refused:
        each_s = (counts.retry_after_s or 0) / (counts.retry_after or 1)
        again = " with Retry-After" + (f" of {digits(each_s)} s" if each_s else "")
    return f"{refused:,} of {counts.requests or 0:,} requests were refused ({' and '.join(codes)}{again})"


def _admitted(run: Summary) -> str:
    counts = run.counts
    if run.succeeded <= 0 or counts.requests_per_s is None:
        return "none was admitted" if run.succeeded <= 0 else f"{run.succeeded:,} were admitted"
    images = "" if counts.images_per_s is None else f", {digits(counts.images_per_s)} images a second"
    return f"{digits(counts.requests_per_s)} requests a second were admitted{images}"
