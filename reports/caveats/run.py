"""Which caveats one run deserves, judged from its records."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.replicas import too_few
from reports.fold.server import ServerSide
from reports.fold.windows import REFUSALS, Windows, undrained
from reports.format import digits, listed, plural
from reports.histogram.percentiles import ENOUGH, LEAST_RESULTS
from reports.ledger.ledger import Record
from reports.summary.summary import Summary, users_busy

LITTLES_SHARE = 0.02
"""Of the users' time: less is the cost of any client, and changes no figure that is shown to three digits."""
THINK_SIGMAS = 3
"""By so many standard errors the mean of random think times may be off."""
SERVERS_OWN = ("ABORTED", "DATA_LOSS", "INTERNAL", "UNAVAILABLE", "UNKNOWN")
"""Codes of gRPC by which a server says that it is at fault."""
AGAIN_SHARE = 0.5
"""Of the refusals: most of them then say when to ask again."""
CACHED_SHARE = 0.01
"""Of what a cache is asked: fewer hits raise a rate, and shift a percentile's rank, by no more than 1 %."""
RANDOM = "random"
"""The role of an input of which nobody knows what it is to hold."""


def run_caveats(
    status: str,
    note: str,
    counts: Windows,
    workers: Collection[str],
    drained: Sequence[Record],
    server: ServerSide,
) -> Iterator[Caveat]:
    """Every caveat of a started run save those the ledger states; `workers` were seen measuring."""
    if status != "done":
        yield caveat(status, note or f"the run ended as {status}")
    if not counts.ok:
        yield caveat("no-data", "no request succeeded in the measure phase")
    yield from _samples(counts.ok)
    if counts.failures:
        yield caveat("failures", f"{counts.failures} of {counts.finished}: {_kinds(counts)}")
    if missing := undrained(workers, drained):
        yield caveat("cut-short", f"no end of the measure phase from {', '.join(missing)}")
    elif sum(line["finished"] for line in drained) != counts.finished:
        finished = sum(line["finished"] for line in drained)
        yield caveat(
            "results-lost", f"workers finished {finished} requests, the ledger has {counts.finished}"
        )
    if workers and server.gap:
        yield server.gap
    if server.requests is not None and server.requests > counts.at_server:
        yield caveat("counts-mismatch", _mismatch(server.requests, counts))
    if (server.cache_share or 0.0) > CACHED_SHARE:
        share = f"{digits(100 * (server.cache_share or 0.0))} %"
        yield caveat("answers-from-cache", f"a cache answered {share} of what it was asked, and no model")
    if said := server.several or too_few(server.requests, counts):
        yield caveat("several-servers", said)


def _mismatch(counted: int, counts: Windows) -> str:
    others = f" and at most {counts.other_phases} of other phases" if counts.other_phases else ""
    return f"sent {counts.sent} requests{others}, the server counted {counted}"


def _samples(count: int) -> Iterator[Caveat]:
    untold = [name for name, least in LEAST_RESULTS.items() if count < least]
    doubtful = [name for name, enough in ENOUGH.items() if LEAST_RESULTS[name] <= count < enough]
    parts = [
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} {what}"
        for names, what in ((doubtful, "doubtful"), (untold, "not shown"))
        if names
    ]
    if count and parts:
        yield caveat("few-samples", f"n={count:,}: {', '.join(parts)}")


def littles_law(run: Summary, drained: Sequence[Record]) -> Iterator[Caveat]:
    """The caveat of users that did not wait for answers all the time, their think time aside.

    Of ledgers whose workers do not tell of each user's time nothing is said: there the time before a user's
    first request counts as idle. Nor where some users had no answer, or a worker was lost: their requests are
    missing, and not sent late.
    """
    told = drained and all("users_ns" in line for line in drained)
    told = told and sum(line["users"] for line in drained) == run.level
    share = users_busy(run) if told else None
    if share is None or abs(1 - share) <= LITTLES_SHARE + _think_error(run):
        return
    users, busy = plural(round(run.level), "user"), digits(share * run.level)
    kept = f"{users} kept {busy} requests in flight (X·R)"
    own = f"{digits(100 * (1 - share))} % of their time passed between an answer and the next request"
    if run.think_s:
        kept = f"{users} waited for answers or thought as {busy} would (X·(R+Z))"
        own += f", beyond the {run.think_s:g} s that they think"
    yield caveat("littles-law", f"{kept}: {own if share < 1 else 'times and counts do not agree'}")


def _think_error(run: Summary) -> float:
    """The share by which random think times may be off: the deviation of an exponential one is its mean."""
    cycle_s = run.think_s + (run.service.mean_ns or 0.0) / 1e9
    random = run.think.startswith("exponential")
    return THINK_SIGMAS * run.think_s / cycle_s / sqrt(run.succeeded) if random and run.succeeded else 0.0


def varying_load(load: str, stages: Sequence[Sequence[Any]]) -> Iterator[Caveat]:
    """The caveat of a run whose load had a course: no percentile of all of it is that of any level."""
    lasts_s = Counter[str]()
    for name, seconds, *_ in stages:
        lasts_s[name] += seconds
    if stages:
        course = ", ".join(f"{name} {seconds:g} s" for name, seconds in lasts_s.items())
        what = "rate" if load == "open" else "number of users"
        yield caveat("varying-load", f"the {what} changed during the run: {course}")


def random_input(inputs: Sequence[Any]) -> Iterator[Caveat]:
    """The caveat of an endpoint some of whose `inputs`, as a header has them, are filled by chance."""
    told = (str(text).split() for text in inputs)
    if names := [words[0] for words in told if words[1:] and words[-1] == RANDOM]:
        yield caveat("random-input", f"what it is sent as {' and '.join(names)} is random")


def _kinds(counts: Windows) -> str:
    """Failures by kind in words, most frequent first, with their codes: rejected 9 (429 with Retry-After)."""
    codes = defaultdict[str, dict[str, int]](dict)
    for code, count in counts.failure_codes.items():
        codes[kind_of_code(code)][code] = count
    ranked = _ranked(counts.failure_kinds)
    return ", ".join(f"{kind} {count}{_codes(codes[kind], counts.retry_after)}" for kind, count in ranked)


def _codes(found: Mapping[str, int], retry_after: int) -> str:
    """The codes of the failures of a kind, with how many have each where they are several."""
    if not found:
        return ""
    codes = ", ".join(f"{code} {count}" for code, count in _ranked(found)) if len(found) > 1 else min(found)
    refused = sum(count for code, count in found.items() if code in REFUSALS)
    again = " with Retry-After" if refused and retry_after >= AGAIN_SHARE * refused else ""
    return f" ({codes}{again})"


def kind_of_code(code: str) -> str:
    """The kind of failures with an HTTP status, a gRPC code, or the system's name of an error."""
    if code.isdecimal():
        return {"4": "rejected", "5": "server-error"}.get(code[0], "bad-reply")
    if code.startswith("E"):
        return "exhausted"
    return "server-error" if code in SERVERS_OWN else "rejected"


def _ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
