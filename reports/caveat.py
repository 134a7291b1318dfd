"""Doubt as a value: a reason to distrust a number, what to do about it, and what holds of each kind of it."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import Flag, auto


class Trait(Flag):
    """What holds of a kind of caveat, for its run and for whoever draws conclusions from it."""

    TAINTS = auto()
    """It invalidates the numbers, so that no conclusion may rest on them."""
    IS_BOUNDED = auto()
    """A bound of its own judges it, so that it invalidates the run for no other bound."""
    OF_CLIENT = auto()
    """The client is at its limit, so that failures and drops may be its own."""
    VOIDS = auto()
    """The run is no evidence about the server, whatever its latency was."""
    SPLITS = auto()
    """The run's beginning and end are not of one server, or not of one client."""
    SPOILS_SEARCH = auto()
    """It misleads a search, which overloads the server on purpose: the run was cut off or lost a worker."""
    BY_STOPPING = auto()
    """A threshold that stops its study brings it with it, or has judged it itself."""


_NONE = Trait(0)
_VOID = Trait.TAINTS | Trait.VOIDS


@dataclass(frozen=True)
class CaveatKind:
    """What to do about a caveat, what holds of it, and, where it invalidates a run, in short why.

    `explains` are the codes of what it surely brings about in its run, which is then no finding of its own.
    """

    advice: str
    traits: Trait = _NONE
    why: str = ""
    explains: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Caveat:
    """A reason to doubt one run's numbers: what happened (text) and what to do (advice)."""

    code: str
    text: str
    advice: str

    @property
    def tainted(self) -> bool:
        """Whether this invalidates the number, so that no conclusion may rest on it."""
        return self.has(Trait.TAINTS)

    def has(self, trait: Trait) -> bool:
        """Whether this holds of its kind."""
        return trait in KINDS.get(self.code, _UNKNOWN).traits


def coded(trait: Trait) -> frozenset[str]:
    """The codes of all kinds of which this holds."""
    return frozenset(code for code, kind in KINDS.items() if trait in kind.traits)


_UNKNOWN = CaveatKind("Look at the logs before trusting the number.")
KINDS = {
    "ledger-damaged": CaveatKind(
        "Copy the ledger anew from where it was written, or run the cell again: a part of it is missing.",
        _VOID,
        "the ledger is damaged",
        frozenset(("unfinished", "results-lost", "cut-short", "no-data", "counts-mismatch", "littles-law")),
    ),
    "aborted": CaveatKind(
        "Run the study again; what was measured until then is kept.",
        _VOID | Trait.SPOILS_SEARCH | Trait.BY_STOPPING,
        "aborted",
        frozenset(("cut-short", "counts-mismatch")),
    ),
    "unfinished": CaveatKind(
        "The study stopped inside this run: run it again.",
        _VOID | Trait.SPOILS_SEARCH | Trait.BY_STOPPING,
        "unfinished",
        frozenset(("cut-short", "results-lost", "counts-mismatch")),
    ),
    "failed": CaveatKind("Read the run's note and the logs, fix the cause, run again.", _VOID, "failed"),
    "worker-lost": CaveatKind(
        "Look at the worker's log; run the cell again with all workers.",
        _VOID | Trait.SPLITS | Trait.SPOILS_SEARCH,
        "a worker was lost",
        frozenset(("users-missing", "results-lost", "cut-short", "counts-mismatch")),
    ),
    "worker-joined": CaveatKind(
        "Run the cell again: its users were redistributed while it was measured.",
        _VOID,
        "a worker joined",
    ),
    "users-missing": CaveatKind(
        "Check the workers' consoles; run the cell again with all its users.",
        _VOID,
        "users were missing",
    ),
    "server-lost": CaveatKind(
        "Look at the server's log; restart it and run the cell again.",
        _VOID | Trait.SPLITS,
        "the server restarted",
        frozenset(("cold-shape", "regime-change", "drift")),
    ),
    "counters-reset": CaveatKind(
        "Find what loaded the model or changed the server meanwhile (a repository poll, a deployment, a "
        "balancer), keep it from doing so, and run the cell again.",
        _VOID | Trait.SPLITS,
        "the counters began again",
        frozenset(("cold-shape", "regime-change", "drift")),
    ),
    "results-lost": CaveatKind(
        "Look for a worker that died or a full disk; run the cell again.",
        _VOID | Trait.SPLITS,
        "results were lost",
        frozenset(("counts-mismatch", "littles-law")),
    ),
    "cut-short": CaveatKind(
        "Run the cell again: its end was not recorded.",
        _VOID | Trait.BY_STOPPING,
        "cut short",
        frozenset(("counts-mismatch",)),
    ),
    "cold-shape": CaveatKind(
        "Use a longer warm-up, so that the server has run this batch size before it is measured; run again.",
        _VOID,
        "the server was cold",
    ),
    "answers-from-cache": CaveatKind(
        "Turn the server's or the proxy's cache off and run again: a study sends the same items many times.",
        _VOID,
        "a cache answered",
    ),
    "no-data": CaveatKind(
        "No request succeeded: see the failures by kind and the server's log.",
        _VOID | Trait.BY_STOPPING,
        "no request succeeded",
    ),
    "client-bound": CaveatKind(
        "Where it had no core, give the client cores or a host of its own; else add workers or hosts, or "
        "lower the load: this is the client's speed, not the server's.",
        Trait.TAINTS | Trait.OF_CLIENT,
        "the client was the limit",
        frozenset(("late-arrivals", "littles-law")),
    ),
    "client-exhausted": CaveatKind(
        "Keep connections (--channels per-user), raise `ulimit -n` and the range of local "
        "ports, or add hosts: these failures are not the server's.",
        Trait.TAINTS | Trait.OF_CLIENT,
        "the client ran out of ports or file descriptors",
    ),
    "rate-missed": CaveatKind(
        "Add workers or lower the rate: the numbers belong to the rate that was offered.",
        Trait.TAINTS,
        "the rate was not kept",
    ),
    "counts-mismatch": CaveatKind(
        "Keep other clients away from the server while measuring, then run again.",
        Trait.TAINTS,
        "the server counted other requests",
    ),
    "settings-differ": CaveatKind(
        "Keep others from loading the model while the study runs, then run the cell again.",
        Trait.TAINTS,
        "the server's settings differed",
    ),
    "topology-differs": CaveatKind(
        "Start as many workers and hosts as the cell asks for, then run it again.",
        Trait.TAINTS,
        "the workers or hosts differed",
    ),
    "dropped-arrivals": CaveatKind(
        "Lower the rate, or raise --max-in-flight: as many as it allows were in use.",
        Trait.TAINTS,
        "arrivals were dropped",
    ),
    "regime-change": CaveatKind(
        "Look at the timeline and the GPU's clocks; warm up beyond that second, then run the cell again.",
        Trait.TAINTS,
        "the server's speed changed",
    ),
    "drift": CaveatKind(
        "Look at the timeline; warm up longer or let the server cool, then run the cell again.",
        Trait.TAINTS,
        "latency drifted",
    ),
    "warming-up": CaveatKind(
        "Warm up longer (--warm-up), so that the server has compiled and filled its caches before it is "
        "measured; run the cell again.",
        Trait.TAINTS,
        "the server was warming up",
        frozenset(("unsteady",)),
    ),
    "disturbed": CaveatKind(
        "Stop the other processes, or give the server cores of its own, and run again: the cell's figures "
        "are of the repeats without them.",
        Trait.TAINTS,
        "other processes took the cores",
        frozenset(("others-cpu", "unsteady")),
    ),
    "failures": CaveatKind(
        "Look at the kinds: the percentiles cover only the requests that succeeded.",
        Trait.TAINTS | Trait.IS_BOUNDED | Trait.BY_STOPPING,
        "requests failed",
    ),
    "batching-delay": CaveatKind(
        "Set --queue-delay-us 0 before comparing one user with servers that do not wait, or subtract it."
    ),
    "clock-stepped": CaveatKind(
        "Times of day follow the clock as it was before the step; durations are not affected."
    ),
    "connections-differ": CaveatKind(
        "Look for a proxy or a pool: figures on connections use those that were seen."
    ),
    "few-samples": CaveatKind("Measure longer, or leave the high percentiles out of any conclusion."),
    "gpu-clocks": CaveatKind(
        "Cool the GPU, raise its power limit or fix its clocks; compare only runs at the same clocks."
    ),
    "gpu-memory-full": CaveatKind(
        "Use smaller batches or fewer instances where allocations fail; frameworks keep memory in reserve."
    ),
    "gpu-mig": CaveatKind(
        "Compare the throughput, or turn MIG off: the figures of one instance are not read."
    ),
    "gpu-pcie": CaveatKind("Check the GPU's slot and lanes, or send fewer bytes to it: uint8, not float32."),
    "gpu-shared": CaveatKind(
        "Stop the other programs on the GPU: they take its time, and their energy is counted as the server's."
    ),
    "gpus-unknown": CaveatKind(
        "Set the server's CUDA_VISIBLE_DEVICES and give the URL of its metrics: figures are of all GPUs."
    ),
    "late-arrivals": CaveatKind(
        "Raise --max-in-flight, or check the workers' CPU and lag; the latency includes the delay."
    ),
    "link-differs": CaveatKind(
        "The figures apply to the link as measured; free its cores, or fix the profile."
    ),
    "link-rate": CaveatKind("Correct --link-mbit: it is the rate of one client host's narrowest link."),
    "littles-law": CaveatKind(
        "Fewer requests in flight than users: the client itself spent time between requests, so check its "
        "CPU and its event loop. More: look for a clock that jumped or results that were lost."
    ),
    "others-cpu": CaveatKind(
        "Stop the other processes, or give client and server cores of their own: the figures are of what was "
        "left to them."
    ),
    "out-of-range": CaveatKind(
        "Look for a clock that jumped or a request that hung; such values were clamped."
    ),
    "path-gap": CaveatKind(
        "Connections were closed between readings: turn keep-alive on, or treat the path as unknown."
    ),
    "probe-gap": CaveatKind(
        "Let the server's statistics, configuration and metrics be read from the master."
    ),
    "random-input": CaveatKind(
        "The inputs are random numbers: the load is real, the embeddings mean nothing."
    ),
    "repeats-differ": CaveatKind(
        "Look for what changed between the repeats (clocks, caches, other programs), then run again with "
        "more --repeats: their mean is no figure of the cell."
    ),
    "rising-latency": CaveatKind(
        "Lower the rate if more arrives than the server answers: its percentiles depend on the run's length."
    ),
    "several-servers": CaveatKind(
        "Give the endpoint the address of one replica, or read each replica's own metrics; load endpoints of "
        "one model one at a time: the server's parts cover only some of the requests, or those of others, "
        "and how busy all servers were is unknown."
    ),
    "stalls": CaveatKind(
        "Look for what the service does then (garbage collection, a lock, a disk, a probe). Percentiles "
        "under closed-loop load do not show it: measure with --rates."
    ),
    "targets-differ": CaveatKind(
        "Use IP addresses, or make the name resolve to the same ones on every host."
    ),
    "tls-unverified": CaveatKind("Use --tls-ca with the server's CA certificate instead of --tls-no-verify."),
    "trace-gap": CaveatKind(
        "The trace covers only the requests that were found; raise --raw-results to cover all."
    ),
    "unexplained": CaveatKind(
        "See docs/attribution.md for possible causes; the known parts do not add up to the whole."
    ),
    "unsteady": CaveatKind("Warm up longer, or find out what else the server is doing."),
    "varying-load": CaveatKind("Read its stages under Load profile: the run as a whole has no single level."),
    "warm-up-failures": CaveatKind("Look at the server's log: requests failed during the warm-up."),
}
"""Every kind of caveat by its code: those that invalidate, the gravest first, then all others."""


def caveat(code: str, text: str) -> Caveat:
    """The caveat of one code with the advice that belongs to it; an unknown code gets a general one."""
    return Caveat(code, text, KINDS.get(code, _UNKNOWN).advice)


def without_consequences(caveats: Sequence[Caveat]) -> tuple[Caveat, ...]:
    """The caveats of one run, but for those that another of them explains."""
    explained = {code for one in caveats for code in KINDS.get(one.code, _UNKNOWN).explains}
    return tuple(one for one in caveats if one.code not in explained)


def gravest(codes: Container[str]) -> str:
    """In short why the gravest of these invalidates a run; empty where none does."""
    return next((kind.why for code, kind in KINDS.items() if code in codes), "")
