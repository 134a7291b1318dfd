"""The bound that a search for a rate was given, and which runs tell whether the server met it."""

import re
from dataclasses import dataclass

from reports.page.grid import Runs
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.load.open_load import latency_ms

_BOUND = re.compile(r"\s*(p50|p90|p95|p99|p99\.9)\s*<=\s*(\d+(?:\.\d+)?)\s*(?:ms)?\s*")
# Why a run is no evidence about the server, the gravest reason first. Whatever its latency was:
_BROKEN = {
    "aborted": "aborted",
    "unfinished": "unfinished",
    "failed": "failed",
    "worker-lost": "a worker was lost",
    "worker-joined": "a worker joined",
    "users-missing": "users were missing",
    "server-lost": "the server restarted",
    "results-lost": "results were lost",
    "cut-short": "cut short",
    "cold-shape": "the server was cold",
    "no-data": "no request succeeded",
}
# Where its latency is within the bound, since a client at its limit makes failures and drops by itself:
_CLIENT = {
    "client-bound": "the client was the limit",
    "client-exhausted": "the client had no port or file left",
}
# Where nothing failed or was dropped either, which often brings these along:
_ODD = {"rate-missed": "the rate was not kept", "counts-mismatch": "the server counted other requests"}
_WHY = _BROKEN | _CLIENT | _ODD


@dataclass(frozen=True)
class Bound:
    """What was asked of every rate: a percentile of latency at or below some milliseconds."""

    percentile: str
    limit_ms: float

    def __str__(self) -> str:
        return f"{self.percentile} ≤ {self.limit_ms:g} ms"

    def exceeded_by(self, run: Summary) -> bool:
        """Whether the latency of a run is known and above the limit."""
        found_ms = latency_ms(run, self.percentile)
        return found_ms is not None and found_ms > self.limit_ms

    def met_by(self, run: Summary) -> bool | None:
        """Whether the server met it in a run; None where the run is no evidence about the server.

        It did not where latency exceeds it, some requests failed, or arrivals were dropped.
        """
        codes = tainting(run)
        if codes & set(_BROKEN):
            return None
        if self.exceeded_by(run):
            return False
        if codes & set(_CLIENT):
            return None
        if run.failures or run.dropped:
            return False
        return None if codes or latency_ms(run, self.percentile) is None else True


def find_bound(study: Study) -> Bound | None:
    """The bound in the header's options, such as `p99<=100`; None where no rate was searched for."""
    asked = (study.header.get("options") or {}).get("find_rate") or ""
    found = _BOUND.fullmatch(str(asked))
    return Bound(found[1], float(found[2])) if found else None


def tainting(run: Summary) -> set[str]:
    """The codes of what disqualifies a run."""
    return {doubt.code for doubt in run.caveats if doubt.tainted}


def obstacle(unknown: Runs) -> str:
    """Why the runs at a rate are no evidence, the gravest reason alone: `failed at 83.5/s`."""
    codes = {code for run in unknown for code in tainting(run)}
    why = next((why for code, why in _WHY.items() if code in codes), "no latency is known")
    return f"{why} at {unknown[0].level:g}/s"
