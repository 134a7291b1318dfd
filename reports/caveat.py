"""Doubt as a value: a reason to distrust a number, what to do about it, and what holds of each kind of it."""

from dataclasses import dataclass
from enum import Flag, auto


class Trait(Flag):
    """What holds of a kind of caveat, for its run and for whoever draws conclusions from it."""

    TAINTS = auto()
    """It disqualifies the numbers, so that no conclusion may rest on them."""
    IS_BOUNDED = auto()
    """A bound of its own judges it, so that it disqualifies the run for no other bound."""
    OF_CLIENT = auto()
    """The client is at its limit, so that failures and drops may be its own."""
    VOIDS = auto()
    """The run is no evidence about the server, whatever its latency was."""
    SPLITS = auto()
    """The run's beginning and end are not of one server, or not of one client."""
    SHORT_HANDED = auto()
    """The run lacked workers or users; a search under way goes on without it."""
    SPOILS_SEARCH = auto()
    """It misleads a search, which overloads the server on purpose: the run was cut off or lost a worker."""
    BY_STOPPING = auto()
    """A threshold that stops its study brings it with it, or has judged it itself."""


@dataclass(frozen=True)
class Caveat:
    """A reason to doubt one run's numbers: what happened (text) and what to do (advice)."""

    code: str
    text: str
    advice: str

    @property
    def tainted(self) -> bool:
        """Whether this disqualifies the number, so that no conclusion may rest on it."""
        return self.has(Trait.TAINTS)

    def has(self, trait: Trait) -> bool:
        """Whether this holds of its kind."""
        return trait in _TRAITS.get(self.code, Trait(0))


def coded(trait: Trait) -> frozenset[str]:
    """The codes of all kinds of which this holds."""
    return frozenset(code for code, traits in _TRAITS.items() if trait in traits)


ADVICE = {
    "aborted": "Run the study again; what was measured until then is kept.",
    "client-bound": "Add workers or hosts, or lower the load: this is the client's speed, not the server's.",
    "client-exhausted": "Keep connections (--channels per-user), raise `ulimit -n` and the range of local "
    "ports, or add hosts: these failures are not the server's.",
    "clock-stepped": "Read times of day as of the clock before it was set; durations are not touched by it.",
    "cold-shape": "Let the server meet this batch size before measuring it, by a longer warm-up; run again.",
    "connections-differ": "Look for a proxy or a pool: what is said of connections rests on those seen.",
    "counts-mismatch": "Keep other clients away from the server while measuring, then run again.",
    "cut-short": "Run the cell again: what was done at its end is not known.",
    "dropped-arrivals": "Lower the rate, or raise --max-in-flight: as many as it allows were in use.",
    "failed": "Read the run's note and the logs, mend the cause, run again.",
    "failures": "Look at the kinds: the percentiles cover only the requests that succeeded.",
    "few-samples": "Measure longer, or leave the high percentiles out of any conclusion.",
    "late-arrivals": "Raise --max-in-flight, or see the workers' CPU and lag; latency holds the delay.",
    "link-differs": "Read its figures as of the link that was measured; free its cores, or mend the profile.",
    "no-data": "No request succeeded: see the failures by kind and the server's log.",
    "out-of-range": "Look for a clock that jumped or a request that hung; such values were clamped.",
    "path-gap": "Connections were closed between the looks at them: turn keep-alive on, or read the path as "
    "unknown.",
    "probe-gap": "Let the server's statistics, configuration and metrics be read from the master.",
    "rate-missed": "Add workers or lower the rate: the numbers belong to the rate that was offered.",
    "results-lost": "Look for a worker that died or a full disk; run the cell again.",
    "settings-differ": "Keep others from loading the model while the study runs, then run the cell again.",
    "server-lost": "Look at the server's log; restart it and run the cell again.",
    "targets-differ": "Give IP addresses, or let the name stand for the same ones on every host.",
    "tls-unverified": "Give the server's authority by --tls-ca in place of --tls-no-verify.",
    "topology-differs": "Start as many workers and hosts as the cell asks for, then run it again.",
    "trace-gap": "Read the trace as of the requests found alone; for all of them, raise --raw-results.",
    "unexplained": "See docs/attribution.md for what can hide there; do not read the parts as the whole.",
    "unfinished": "The study stopped inside this run: run it again.",
    "unsteady": "Warm up longer, or find out what else the server is doing.",
    "users-missing": "Look at the workers' consoles; run the cell again with all its users.",
    "varying-load": "Read its stages under Autoscaling: figures of the whole run belong to no one rate.",
    "warm-up-failures": "Look at the server's log: its answers failed before the measuring began.",
    "worker-joined": "Run the cell again: its users were spread anew while it was measured.",
    "worker-lost": "Look at the worker's log; run the cell again with all workers.",
}
_UNKNOWN = "Look at the logs before trusting the number."
_TRAITS = {
    "aborted": Trait.TAINTS | Trait.VOIDS | Trait.SPOILS_SEARCH | Trait.BY_STOPPING,
    "client-bound": Trait.TAINTS | Trait.OF_CLIENT,
    "client-exhausted": Trait.TAINTS | Trait.OF_CLIENT,
    "cold-shape": Trait.TAINTS | Trait.VOIDS,
    "counts-mismatch": Trait.TAINTS,
    "cut-short": Trait.TAINTS | Trait.VOIDS | Trait.BY_STOPPING,
    "dropped-arrivals": Trait.TAINTS,
    "failed": Trait.TAINTS | Trait.VOIDS,
    "failures": Trait.TAINTS | Trait.IS_BOUNDED | Trait.BY_STOPPING,
    "no-data": Trait.TAINTS | Trait.VOIDS | Trait.BY_STOPPING,
    "rate-missed": Trait.TAINTS,
    "results-lost": Trait.TAINTS | Trait.VOIDS | Trait.SPLITS,
    "server-lost": Trait.TAINTS | Trait.VOIDS | Trait.SPLITS,
    "settings-differ": Trait.TAINTS,
    "topology-differs": Trait.TAINTS,
    "unfinished": Trait.TAINTS | Trait.VOIDS | Trait.SPOILS_SEARCH | Trait.BY_STOPPING,
    "users-missing": Trait.TAINTS | Trait.VOIDS | Trait.SHORT_HANDED,
    "worker-joined": Trait.TAINTS | Trait.VOIDS | Trait.SHORT_HANDED,
    "worker-lost": Trait.TAINTS | Trait.VOIDS | Trait.SPLITS | Trait.SHORT_HANDED | Trait.SPOILS_SEARCH,
}


def caveat(code: str, text: str) -> Caveat:
    """The caveat of one code with the advice that belongs to it; an unknown code gets a general one."""
    return Caveat(code, text, ADVICE.get(code, _UNKNOWN))
