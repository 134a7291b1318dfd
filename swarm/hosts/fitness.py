"""What is wrong with a host, by what it said: decided without asking it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

PREPARE = "run python -m swarm hosts prepare"
LARGEST_OFFSET_NS = 500_000_000
"""Phases begin at one moment by all hosts' clocks; a start more than a second away is not heeded at all."""
LEAST_FILES = 1024


@dataclass(frozen=True)
class Facts:
    """What a host said: see `facts.py`. Empty or None where it is not known.

    Its clock is ahead of ours by `clock_offset_ns`, give or take `clock_doubt_ns`.
    """

    hostname: str = ""
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    cores: int = 0
    load: float | None = None
    files_soft: int | None = None
    files_hard: int | None = None
    ports: list[int] = field(default_factory=list)
    system: str = ""
    tcp_congestion_control: str = ""
    clock_offset_ns: int = 0
    clock_doubt_ns: int = 0

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON, without those that are not known."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", {}, [])}


@dataclass(frozen=True)
class Problem:
    """One sentence; `fatal` where no study should run on the host as it is."""

    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return self.text if self.fatal else f"{self.text} (a warning)"


def problems(facts: Facts, own: Facts, workers: int | None = None) -> list[Problem]:
    """What is wrong with a host beside `own`, this machine, which `workers` are to run on."""
    return [
        *_versions(facts, own),
        *_commits(facts.commit, own.commit),
        *_clock(facts),
        *_room(facts, workers or 0),
    ]


def _versions(facts: Facts, own: Facts) -> Iterator[Problem]:
    theirs, ours = _minor(facts.python), _minor(own.python)
    if theirs != ours:
        yield Problem(
            f"its Python is {theirs}, ours is {ours}: name one with `python`, remove .venv there, {PREPARE}"
        )
    differing = [
        f"{name} {facts.packages.get(name, 'is missing')} (here {version})"
        for name, version in own.packages.items()
        if facts.packages.get(name) != version
    ]
    if differing:
        yield Problem(f"other packages than here: {', '.join(differing)}: {PREPARE}")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _commits(theirs: str, ours: str) -> Iterator[Problem]:
    """Where either is not known there is nothing to say."""
    if not theirs or not ours:
        return
    if theirs.rstrip("+") != ours.rstrip("+"):
        yield Problem(
            f"its checkout is at {theirs}, ours is at {ours}: {PREPARE}, or bring both to one commit"
        )
    elif theirs != ours:
        where = "there" if theirs.endswith("+") else "here"
        yield Problem(
            f"the checkout {where} has changes that are not committed, so workers may differ", fatal=False
        )


def _clock(facts: Facts) -> Iterator[Problem]:
    """Only what is beyond doubt."""
    if abs(facts.clock_offset_ns) - facts.clock_doubt_ns <= LARGEST_OFFSET_NS:
        return
    way = "ahead of" if facts.clock_offset_ns > 0 else "behind"
    offset_s = abs(facts.clock_offset_ns) / 1e9
    yield Problem(f"its clock is {offset_s:.1f} s {way} ours: let both follow the same time server (NTP)")


def _room(facts: Facts, workers: int) -> Iterator[Problem]:
    if facts.files_soft is not None and facts.files_soft < LEAST_FILES:
        yield Problem(
            f"a process there may open {facts.files_soft} files: raise `ulimit -n` to {LEAST_FILES} or more"
        )
    if facts.cores and workers > facts.cores:
        yield Problem(
            f"{workers} workers share {facts.cores} cores, and each can use one: they may be the limit",
            fatal=False,
        )
