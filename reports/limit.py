"""The named thing that stops a cell from going faster, with its evidence and what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """`evidence` says in words and numbers why, `advice` what would help."""

    code: str
    evidence: str
    advice: str


UNKNOWN = "inconclusive"
"""The code where no limit could be named; the evidence says what is not known."""
OF_THE_LOAD = frozenset({"offered-load", "batches-not-full", "slow-start"})
"""Codes of runs that had room: more users, or a higher rate, would give more."""
OF_THE_SERVER = frozenset(
    {
        *("server-queue", "server-compute", "server-preprocess", "server-full"),
        *("rate-limited", "batching-off", "slow-shape"),
    }
)
"""Codes of runs that a server holds up, whatever connections the requests come over."""
