"""Which caveats one run deserves, judged from its records."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.server import ServerSide
from reports.fold.windows import Windows, undrained
from reports.ledger.ledger import Record

ENOUGH = {"p50": 20, "p90": 100, "p95": 200, "p99": 1_000, "p99.9": 10_000}
"""Results behind a percentile that is to be trusted: ten of them must lie beyond it."""
UNANSWERED = ("refused", "unreachable", "reset", "timeout", "dns", "exhausted")
"""Kinds of failures that the server may have counted, or may never have heard of."""
RANDOM = "random"
"""The role of an input of which nobody knows what it is to hold."""
DOUBTFUL = {"p95": "p95, p99 and p99.9 are", "p99": "p99 and p99.9 are", "p99.9": "p99.9 is"}
"""In words, where there are too few for a percentile and enough for those below it."""


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
        yield caveat("failures", f"{counts.failures} of {counts.finished}: {_kinds(counts.failure_kinds)}")
    if missing := undrained(workers, drained):
        yield caveat("cut-short", f"no end of the measure phase from {', '.join(missing)}")
    elif sum(line["finished"] for line in drained) != counts.finished:
        finished = sum(line["finished"] for line in drained)
        yield caveat(
            "results-lost", f"workers finished {finished} requests, the ledger has {counts.finished}"
        )
    if workers and server.gap:
        yield server.gap
    if server.requests is not None and not _least_counted(counts) <= server.requests <= counts.sent:
        yield caveat("counts-mismatch", f"sent {counts.sent} requests, the server counted {server.requests}")


def _least_counted(counts: Windows) -> int:
    """How many of the requests sent the server must have counted."""
    return counts.sent - sum(counts.failure_kinds.get(kind, 0) for kind in UNANSWERED)


def _samples(count: int) -> Iterator[Caveat]:
    doubtful = next((names for least, names in DOUBTFUL.items() if 0 < count < ENOUGH[least]), None)
    if doubtful:
        yield caveat("few-samples", f"n={count}: {doubtful} doubtful")


def varying_load(stages: Sequence[Sequence[Any]]) -> Iterator[Caveat]:
    """The caveat of a run whose rate had a course: no percentile of all of it is that of any rate."""
    if stages:
        course = ", ".join(f"{name} {seconds:g} s" for name, seconds, *_ in stages)
        yield caveat("varying-load", f"the rate changed during the run: {course}")


def random_input(inputs: Sequence[Any]) -> Iterator[Caveat]:
    """The caveat of an endpoint some of whose `inputs`, as a header has them, are filled by chance."""
    told = (str(text).split() for text in inputs)
    if names := [words[0] for words in told if words[1:] and words[-1] == RANDOM]:
        yield caveat("random-input", f"what it is sent as {' and '.join(names)} is random")


def _kinds(failure_kinds: Mapping[str, int]) -> str:
    """Failures by kind in words, most frequent first."""
    ranked = sorted(failure_kinds.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} {count}" for kind, count in ranked)
