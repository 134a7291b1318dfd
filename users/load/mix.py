"""A mix of requests: of which class the n-th request of a phase is, whoever sends it, and to whom."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import fsum, isfinite
from typing import Any, Protocol

BLOCK = 1_000
"""Requests within which shares are exact; they are shuffled in each, so that large ones may come in a row."""
LEAST_SHARE = 1 / BLOCK
MOST_CLASSES = 32
NEAR = 1e-6
"""How far from 1 the sum of shares may be, which people write in decimals."""
GIVE = "give the shares of all requests, which add up to 1, e.g."


class Order(Protocol):
    """Which request is sent as number n of a phase."""

    def at(self, number: int) -> tuple[str, int]:
        """The label of its class, and which of the class's prepared requests, over and over."""


class Traffic(Protocol):
    """Requests that are not all alike."""

    @property
    def classes(self) -> Sequence["RequestClass"]:
        """All that there are; those of one label are alike."""

    def ordered(self, seed: str) -> Order:
        """Their order in a phase; the same for the same seed."""


class ClassSequence:
    """Classes by number in a seeded random order, in which each of BLOCK requests has every class's share.

    Of n requests a class has its share to within one at each whole block, whatever the number of workers that
    send them: number n has one class. Random within a block, so that runs of one class are as long as in
    traffic; a Bernoulli draw for each request would miss shares by chance.
    """

    def __init__(self, shares: Sequence[float], seed: str) -> None:
        self._bounds = [0.0, *accumulate(shares)]
        self._bounds[-1] = 1.0
        self._seed = seed
        self._block, self._classes = -1, list[int]()

    def __call__(self, number: int) -> int:
        """The class of the request with this number, from 0."""
        block, place = divmod(number, BLOCK)
        if block != self._block:
            self._block, self._classes = block, self._shuffled(block)
        return self._classes[place]

    def _shuffled(self, block: int) -> list[int]:
        ends = [round(bound * BLOCK * (block + 1)) - round(bound * BLOCK * block) for bound in self._bounds]
        counts = [after - before for before, after in pairwise(ends)]
        classes = [one for one, count in enumerate(counts) for _ in range(count)]
        random.Random(f"{self._seed}/{block}").shuffle(classes)
        return classes


@dataclass(frozen=True)
class RequestClass:
    """Requests that are alike: the items in each, and the kind of their pictures, empty where there is one.

    `label` is what reports call it.
    """

    label: str
    share: float
    batch: int
    picture: str = ""


@dataclass(frozen=True)
class Mix:
    """Classes whose shares add up to 1."""

    classes: tuple[RequestClass, ...]

    def ordered(self, seed: str) -> "MixedOrder":
        """As a `Traffic`."""
        labels = [one.label for one in self.classes]
        return MixedOrder(labels, ClassSequence([one.share for one in self.classes], seed))


@dataclass(frozen=True)
class MixedOrder:
    """As an `Order`: the class by its sequence, and the class's items by the request's number."""

    labels: Sequence[str]
    classes: ClassSequence

    def at(self, number: int) -> tuple[str, int]:
        """As an `Order` does."""
        return self.labels[self.classes(number)], number


def mix_of(batch_mix: str, picture_mix: str, batch: int) -> Mix | None:
    """The classes of a cell, every batch with every kind of picture; None where all its requests are alike.

    Raises ValueError.
    """
    if not batch_mix and not picture_mix:
        return None
    batches = parse_batches(batch_mix) if batch_mix else {batch: 1.0}
    pictures = parse_shares(picture_mix, "small:0.7,large:0.3") if picture_mix else {"": 1.0}
    made = [
        RequestClass(_label(size if batch_mix else 0, kind), one * other, size, kind)
        for size, one in batches.items()
        for kind, other in pictures.items()
    ]
    if len(made) > MOST_CLASSES:
        raise ValueError(f"give at most {MOST_CLASSES} pairs of a batch and a kind of picture")
    if min(one.share for one in made) < LEAST_SHARE * (1 - NEAR):
        raise ValueError(f"give shares of which none is below {LEAST_SHARE:g}, mixed with each other, too")
    return Mix(tuple(made))


def _label(batch: int, picture: str) -> str:
    kind = f"{picture}px" if picture.isdecimal() else picture
    return "/".join(filter(None, (f"b{batch}" if batch else "", kind)))


def parse_batches(text: str) -> dict[int, float]:
    """`1:0.7,4:0.2,16:0.1` as shares by batch. Raises ValueError with a sentence that says what to give."""
    example = "1:0.7,4:0.2,16:0.1"
    shares = parse_shares(text, example)
    if not all(re.fullmatch(r"[1-9][0-9]{0,3}", name) and int(name) <= 4_096 for name in shares):
        raise ValueError(f"give items in a request from 1 to 4,096 with their shares, e.g. {example}")
    return {int(name): share for name, share in shares.items()}


def parse_shares(text: str, example: str) -> dict[str, float]:
    """`NAME:SHARE,…` as shares by name. Raises ValueError with a sentence that says what to give."""
    try:
        found = [(name.strip(), float(share)) for name, _, share in _parted(text)]
    except ValueError:
        raise ValueError(f"{GIVE} {example}") from None
    shares = dict(found)
    if len(shares) < len(found):
        raise ValueError("name each once")
    if len(shares) > MOST_CLASSES:
        raise ValueError(f"give at most {MOST_CLASSES} of them")
    if "" in shares or not all(isfinite(share) and share > 0 for share in shares.values()):
        raise ValueError(f"{GIVE} {example}")
    if abs(fsum(shares.values()) - 1) > NEAR:
        raise ValueError(f"{GIVE} {example}; these add up to {fsum(shares.values()):g}")
    if min(shares.values()) < LEAST_SHARE:
        raise ValueError(f"give shares of which none is below {LEAST_SHARE:g}")
    return shares


def _parted(text: str) -> list[tuple[str, str, str]]:
    return [part.rpartition(":") for part in text.split(",")]


def chosen_by(orders: Mapping[str, Any]) -> Callable[[int], bool] | None:
    """Which arrivals of a schedule are an endpoint's, where it gets a share of them; None where it gets all.

    `orders` have the `shares` of all endpoints, the `part` that is this one's, and the `split_seed`.
    """
    if not orders.get("shares"):
        return None
    sequence, part = ClassSequence(orders["shares"], orders["split_seed"]), orders["part"]
    return lambda number: sequence(number) == part
