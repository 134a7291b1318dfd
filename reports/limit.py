"""The named thing that stops a cell from going faster, with its evidence and what to do about it."""

from dataclasses import dataclass

LIMITS = (
    "server-cold",
    "client-cpu",
    "client-loop",
    "link",
    "connections",
    "server-queue",
    "server-compute",
    "offered-load",
    "inconclusive",
)
"""Every code; reports/limits/rules.py has the order in which they are looked for."""


@dataclass(frozen=True)
class Limit:
    """`code` is one of LIMITS; `evidence` says in words and numbers why, `advice` what would help."""

    code: str
    evidence: str
    advice: str
