"""Doubt as a value: a reason to distrust a number, what to do about it, and what holds of each kind of it."""

from collections.abc import Container
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
    """What to do about a caveat, what holds of it, and, where it invalidates a run, in short why."""

    advice: str
    traits: Trait = _NONE
    why: str = ""


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
    "aborted": CaveatKind(
        "Run the study again; what was measured until then is kept.",
        _VOID | Trait.SPOILS_SEARCH | Trait.BY_STOPPING,
        "aborted",
    ),
    "unfinished": CaveatKind(
        "The study stopped inside this run: run it again.",
        _VOID | Trait.SPOILS_SEARCH | Trait.BY_STOPPING,
        "unfinished",
    ),
    "failed": CaveatKind("Read the run's note and the logs, fix the cause, run again.", _VOID, "failed"),
    "worker-lost": CaveatKind(
        "Look at the worker's log; run the cell again with all workers.",
        _VOID | Trait.SPLITS | Trait.SPOILS_SEARCH,
        "a worker was lost",
    ),
    "worker-joined": CaveatKind(
        "Run the cell again: its users were spread anew while it was measured.",
        _VOID,
        "a worker joined",
    ),
    "users-missing": CaveatKind(
        "Look at the workers' consoles; run the cell again with all its users.",
        _VOID,
        "users were missing",
    ),
    "server-lost": CaveatKind(
        "Look at the server's log; restart it and run the cell again.",
        _VOID | Trait.SPLITS,
        "the server restarted",
    ),
    "results-lost": CaveatKind(
        "Look for a worker that died or a full disk; run the cell again.",
        _VOID | Trait.SPLITS,
        "results were lost",
    ),
    "cut-short": CaveatKind(
        "Run the cell again: what was done at its end is not known.",
        _VOID | Trait.BY_STOPPING,
        "cut short",
    ),
    "cold-shape": CaveatKind(
        "Let the server meet this batch size before measuring it, by a longer warm-up; run again.",
        _VOID,
        "the server was cold",
    ),
    "no-data": CaveatKind(
        "No request succeeded: see the failures by kind and the server's log.",
        _VOID | Trait.BY_STOPPING,
        "no request succeeded",
    ),
    "client-bound": CaveatKind(
        "Add workers or hosts, or lower the load: this is the client's speed, not the server's.",
        Trait.TAINTS | Trait.OF_CLIENT,
        "the client was the limit",
    ),
    "client-exhausted": CaveatKind(
        "Keep connections (--channels per-user), raise `ulimit -n` and the range of local "
        "ports, or add hosts: these failures are not the server's.",
        Trait.TAINTS | Trait.OF_CLIENT,
        "the client had no port or file left",
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
        "the server was set otherwise",
    ),
    "topology-differs": CaveatKind(
        "Start as many workers and hosts as the cell asks for, then run it again.",
        Trait.TAINTS,
        "other workers or hosts took part",
    ),
    "dropped-arrivals": CaveatKind(
        "Lower the rate, or raise --max-in-flight: as many as it allows were in use.",
        Trait.TAINTS,
        "arrivals were dropped",
    ),
    "failures": CaveatKind(
        "Look at the kinds: the percentiles cover only the requests that succeeded.",
        Trait.TAINTS | Trait.IS_BOUNDED | Trait.BY_STOPPING,
        "requests failed",
    ),
    "clock-stepped": CaveatKind(
        "Read times of day as of the clock before it was set; durations are not touched by it."
    ),
    "connections-differ": CaveatKind(
        "Look for a proxy or a pool: what is said of connections rests on those seen."
    ),
    "few-samples": CaveatKind("Measure longer, or leave the high percentiles out of any conclusion."),
    "late-arrivals": CaveatKind(
        "Raise --max-in-flight, or see the workers' CPU and lag; latency holds the delay."
    ),
    "link-differs": CaveatKind(
        "Read its figures as of the link that was measured; free its cores, or fix the profile."
    ),
    "out-of-range": CaveatKind(
        "Look for a clock that jumped or a request that hung; such values were clamped."
    ),
    "path-gap": CaveatKind(
        "Connections were closed between the looks at them: turn keep-alive on, or read the path as unknown."
    ),
    "probe-gap": CaveatKind(
        "Let the server's statistics, configuration and metrics be read from the master."
    ),
    "random-input": CaveatKind(
        "Read its figures as of random numbers: the load is real, and the embeddings mean nothing."
    ),
    "targets-differ": CaveatKind("Give IP addresses, or let the name stand for the same ones on every host."),
    "tls-unverified": CaveatKind("Give the server's authority by --tls-ca in place of --tls-no-verify."),
    "trace-gap": CaveatKind(
        "Read the trace as of the requests found alone; for all of them, raise --raw-results."
    ),
    "unexplained": CaveatKind(
        "See docs/attribution.md for what can hide there; do not read the parts as the whole."
    ),
    "unsteady": CaveatKind("Warm up longer, or find out what else the server is doing."),
    "varying-load": CaveatKind(
        "Read its stages under Autoscaling: figures of the whole run belong to no one rate."
    ),
    "warm-up-failures": CaveatKind(
        "Look at the server's log: its answers failed before the measuring began."
    ),
}
"""Every kind of caveat by its code: those that invalidate, the gravest first, then all others."""


def caveat(code: str, text: str) -> Caveat:
    """The caveat of one code with the advice that belongs to it; an unknown code gets a general one."""
    return Caveat(code, text, KINDS.get(code, _UNKNOWN).advice)


def gravest(codes: Container[str]) -> str:
    """In short why the gravest of these invalidates a run; empty where none does."""
    return next((kind.why for code, kind in KINDS.items() if code in codes), "")
