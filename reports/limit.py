"""The named thing that stops a cell from going faster, with its evidence and what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """`evidence` says in words and numbers why, `advice` what would help."""

    code: str
    evidence: str
    advice: str
