"""Our own wire beside grpcio on the same connections: whether it matters what sends gRPC's requests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reports.format import digits
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import paired_ratio
from reports.topics.contention.arms import GRPCIO, OWN_WIRE, ArmRuns, Arms

SAME = 0.75
"""Of the other's images/s: less is more than what calls cost either of them, and than losses that differ."""
ONE = "one channel"
PAIRS = ((ONE, "R2", "R8"), ("own channels", "R4", "R9"))
"""What both have, and the arms of our own wire and of grpcio."""


@dataclass(frozen=True)
class SenderPair:
    """Two arms with the same channels, by either sender; `ratio` is grpcio's images/s over our own wire's."""

    channels: str
    own: ArmRuns
    library: ArmRuns
    ratio: LogRatio

    @property
    def alike(self) -> bool:
        """Whether what sends makes no difference that matters."""
        return SAME < self.ratio.ratio < 1 / SAME

    @property
    def differs(self) -> bool:
        """Whether it does, and by more than the repeats do; a ratio without an interval is taken as it is."""
        low, high = self.ratio.low, self.ratio.high
        return not self.alike and (low is None or high is None or not low <= 1 <= high)

    @property
    def slower(self) -> bool:
        """Whether grpcio is clearly slower."""
        return self.differs and self.ratio.ratio < 1

    @property
    def as_many(self) -> bool:
        """Whether both had as many connections, as far as the kernel told."""
        seen = self.own.connections, self.library.connections
        return None in seen or seen[0] == seen[1]

    def __str__(self) -> str:
        """own wire 7.40 (7.18–7.62), grpcio 7.20 (6.98–7.42) images/s on one channel: 0.973× (0.96–0.98)."""
        rates = f"{OWN_WIRE} {self.own.rate}, {GRPCIO} {self.library.rate} images/s on {self.channels}"
        return f"{rates}: {self.ratio.times}" + ("" if self.as_many else ", not on as many connections")


def sender_pairs(arms: Arms) -> tuple[SenderPair, ...]:
    """Those of which both arms have a figure; none where no arm was sent by our own wire."""
    return tuple(_pairs(arms))


def _pairs(arms: Arms) -> Iterator[SenderPair]:
    for channels, ours, theirs in PAIRS:
        own, library = arms.get(ours), arms.get(theirs)
        if own and library and own.sender == OWN_WIRE and own.rates and library.rates:
            yield SenderPair(channels, own, library, paired_ratio(library.rates, own.rates))


def slower_on_one(pairs: Sequence[SenderPair]) -> bool:
    """Whether grpcio is slower on one channel, where that is not for the connection."""
    return any(pair.slower and pair.as_many for pair in pairs if pair.channels == ONE)


def all_alike(pairs: Sequence[SenderPair]) -> bool:
    """Whether what sends matters neither on one channel nor on own channels: both must have been tested."""
    return len(pairs) == len(PAIRS) and all(pair.alike and pair.as_many for pair in pairs)


def senders_said(pairs: Sequence[SenderPair], by_connections: bool) -> str:
    """own wire and grpcio: 7.4 and 7.2 images/s on one channel, 42 and 42 on own channels: the connection, …

    `by_connections`: whether own channels carry more than one, which is then what the connection does.
    """
    each = [
        f"{_median(pair.own)} and {_median(pair.library)}{'' if at else ' images/s'} on {pair.channels}"
        for at, pair in enumerate(pairs)
    ]
    found = ""
    if all_alike(pairs):
        found = ": the connection, not the library" if by_connections else ": the library does not matter"
    elif any(pair.differs for pair in pairs):
        found = ": the library matters"
    return f"{OWN_WIRE} and {GRPCIO}: {', '.join(each)}{found}"


def _median(arm: ArmRuns) -> str:
    return digits(arm.rate.median) if arm.rate else ""


def senders_record(pairs: Sequence[SenderPair]) -> list[dict[str, Any]]:
    """The pairs as study.json has them."""
    return [
        {
            "channels": pair.channels,
            "arms": [pair.own.code, pair.library.code],
            "own_wire_images_per_s": pair.own.rate and pair.own.rate.median,
            "grpcio_images_per_s": pair.library.rate and pair.library.rate.median,
            "ratio": pair.ratio.ratio,
            "ratio_low": pair.ratio.low,
            "ratio_high": pair.ratio.high,
            "alike": pair.alike,
        }
        for pair in pairs
    ]
