"""Cells that run at the same time: endpoints beside each other, or one schedule split among several."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Self

from reports.format import plural
from swarm.closest import closest, some
from swarm.errors import UsageError
from swarm.plan.cell import Cell
from swarm.plan.matrix import LEAST_BASE_PER_S, Size
from users.endpoint import Endpoint
from users.load.assignment import MOST_AT_ONCE
from users.load.mix import parse_shares

LEAST = 2
"""Endpoints of a group."""
EXAMPLE = "siglip@r50+clip-text@c8"
GIVE = f"give NAME@rN, requests/s, or NAME@cN, users, joined by +, e.g. {EXAMPLE}"
SHARES = "old:0.9,new:0.1"
_PART = re.compile(r"([^@+]+)@(?:b([1-9][0-9]{0,3})/)?([rc])([0-9]{1,6}(?:\.[0-9]{1,6})?)")


@dataclass(frozen=True)
class GroupLoad:
    """The load of one endpoint of a group, as --together gives it: open-loop requests/s, or users."""

    endpoint: str
    batch: int
    load: str
    level: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """`siglip@r50`, `siglip@b4/c8`. Raises ValueError with a sentence that says what to give."""
        if not (found := _PART.fullmatch(text.strip())):
            raise ValueError(GIVE)
        name, batch, letter, level = found.groups()
        whole = letter == "r" or level.isdecimal()
        if not whole or not 0 < float(level) <= 100_000:
            raise ValueError(GIVE)
        return cls(name, int(batch or 1), "open" if letter == "r" else "closed", float(f"{float(level):g}"))

    @property
    def at(self) -> str:
        """`r50`, `b4/c8`."""
        batch = f"b{self.batch}/" if self.batch > 1 else ""
        return f"{batch}{'r' if self.load == 'open' else 'c'}{self.level:g}"

    def __str__(self) -> str:
        """As it is given."""
        return f"{self.endpoint}@{self.at}"

    def cell(self, endpoints: Mapping[str, Endpoint], size: Size) -> Cell:
        """This load alone. Raises UsageError where there is no such endpoint, or its batch is too large."""
        endpoint = _known(endpoints, self.endpoint, f"--together {self}")
        _check_batch(endpoint, self.batch, f"--together {self}")
        return Cell(endpoint, self.batch, self.level, size.iterations, size.seconds, self.load)


def parse_group(text: str) -> tuple[GroupLoad, ...]:
    """The parts of a group. Raises ValueError with a sentence that says what to give."""
    parts = tuple(map(GroupLoad.parse, text.split("+")))
    if not LEAST <= len(parts) <= MOST_AT_ONCE:
        raise ValueError(f"give {LEAST} to {MOST_AT_ONCE} endpoints, e.g. {EXAMPLE}")
    if len({part.endpoint for part in parts}) < len(parts):
        raise ValueError("name each endpoint once")
    return parts


def parse_groups(text: str) -> list[tuple[GroupLoad, ...]]:
    """The groups between commas, those of the same parts once. Raises ValueError likewise."""
    found: dict[frozenset[GroupLoad], tuple[GroupLoad, ...]] = {}
    for parts in map(parse_group, text.split(",")):
        found.setdefault(frozenset(parts), parts)
    return list(found.values())


def together(endpoints: Iterable[Endpoint], text: str, size: Size) -> list[Cell]:
    """Each part of the groups alone, once, then the parts of each group. Raises UsageError."""
    known = {endpoint.name: endpoint for endpoint in endpoints}
    groups = parse_groups(text)
    alone = dict.fromkeys(part for parts in groups for part in parts)
    return [
        *(part.cell(known, size) for part in alone),
        *(_beside(part, parts, known, size) for parts in groups for part in parts),
    ]


def _beside(part: GroupLoad, parts: Sequence[GroupLoad], known: Mapping[str, Endpoint], size: Size) -> Cell:
    others = "+".join(f"{one.endpoint}-{one.at.replace('/', '-')}" for one in parts if one != part)
    text = "+".join(map(str, parts))
    return replace(part.cell(known, size), together=text, variant=f"with-{others}")


def parse_split(text: str) -> dict[str, float]:
    """`old:0.9,new:0.1` as shares by endpoint. Raises ValueError with a sentence that says what to give."""
    shares = parse_shares(text, SHARES)
    if not LEAST <= len(shares) <= MOST_AT_ONCE:
        raise ValueError(f"give {LEAST} to {MOST_AT_ONCE} endpoints, e.g. {SHARES}")
    return shares


def split(
    endpoints: Iterable[Endpoint], text: str, size: Size, rates: Iterable[float], batches: Iterable[int]
) -> list[Cell]:
    """For each batch and rate a group whose endpoints share the arrivals of one schedule. Raises UsageError.

    All of a group measure for the same time, in which the schedule has the size's requests.
    """
    known = {endpoint.name: endpoint for endpoint in endpoints}
    shares, option = parse_split(text), f"--split {text:.200}"
    told = ",".join(f"{name}:{share:g}" for name, share in shares.items())
    cells = []
    for batch, rate in itertools.product(batches, rates):
        group = f"split {told} {f'b{batch}/' if batch > 1 else ''}r{rate:g}"
        for name, share in shares.items():
            endpoint = _known(known, name, option)
            _check_batch(endpoint, batch, option)
            level, requests = float(f"{share * rate:.12g}"), ceil(share * size.iterations)
            if level < LEAST_BASE_PER_S:
                raise UsageError(
                    f"{option}: {name} gets {level:g} of {rate:g} requests/s, and must get at least"
                    f" {LEAST_BASE_PER_S:g}; give it a larger share, or a higher rate"
                )
            cell = Cell(endpoint, batch, level, requests, size.seconds, "open", split=share, together=group)
            cells.append(replace(cell, variant=f"split-{share:g}"))
    return cells


def _known(endpoints: Mapping[str, Endpoint], name: str, option: str) -> Endpoint:
    if name not in endpoints:
        raise UsageError(
            f"{option}: this study has no endpoint {name:.80}; {closest(name, endpoints)}there are"
            f" {some(endpoints)}"
        )
    return endpoints[name]


def _check_batch(endpoint: Endpoint, batch: int, option: str) -> None:
    most = endpoint.contract.max_batch
    if most and batch > most:
        raise UsageError(
            f"{option}: {endpoint.name} takes at most {plural(most, 'item')} per request; give a batch up to"
            f" {most}"
        )
