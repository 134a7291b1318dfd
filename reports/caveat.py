"""Doubt as a value: a reason to distrust a number, with what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Caveat:
    """A reason to doubt one run's numbers: what happened (text) and what to do (advice)."""

    code: str
    text: str
    advice: str

    @property
    def tainted(self) -> bool:
        """Whether this disqualifies the number, so that no conclusion may rest on it."""
        return self.code in _TAINTING


_ADVICE = {
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
_TAINTING = frozenset(
    {
        "aborted",
        "client-bound",
        "client-exhausted",
        "cold-shape",
        "counts-mismatch",
        "cut-short",
        "dropped-arrivals",
        "failed",
        "failures",
        "no-data",
        "rate-missed",
        "results-lost",
        "server-lost",
        "settings-differ",
        "topology-differs",
        "unfinished",
        "users-missing",
        "worker-joined",
        "worker-lost",
    }
)


def caveat(code: str, text: str) -> Caveat:
    """The caveat of one code with the advice that belongs to it; an unknown code gets a general one."""
    return Caveat(code, text, _ADVICE.get(code, _UNKNOWN))
