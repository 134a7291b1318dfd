"""The figures that the seeds' hypotheses are judged by: one way over another, wherever a study has both."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.page.grid import ENOUGH_RUNS, Runs, Value
from reports.stats.spread import Spread, over, spread_of
from reports.summary.summary import Summary
from reports.topics.payloads.matrix import images_per_s

LESS, MORE = 0.9, 1.1
"""Between them two figures are about equal, where the repeats allow no more than the next two."""
LEAST, MOST = 0.8, 1.25
WITHOUT_MODEL = ("emulated", "null")
"""Backends that prove nothing of what wins overall."""


@dataclass(frozen=True)
class Comparison:
    """gRPC over HTTP, or one way over the best other, somewhere in a study."""

    where: str
    ratio: Spread

    @property
    def more(self) -> bool:
        """Whether the first has more, with no repeat in common."""
        return self.ratio.median > MORE and self.ratio.low > 1

    @property
    def less(self) -> bool:
        """Whether the first has less, with no repeat in common."""
        return self.ratio.median < LESS and self.ratio.high < 1

    @property
    def below(self) -> bool:
        """Whether every one of enough repeats has less than every one of the other, however little."""
        return self.ratio.high < 1 and self.ratio.runs >= ENOUGH_RUNS

    @property
    def equal(self) -> bool:
        """Whether both have about the same, as far as the repeats tell."""
        return LESS <= self.ratio.median <= MORE and self.ratio.low >= LEAST and self.ratio.high <= MOST

    def __str__(self) -> str:
        return f"{self.ratio.times} {self.where}"


def pairs(runs: Runs, value: Value) -> Iterator[Comparison]:
    """gRPC over HTTP for each backend, payload, batch, level and link; many users on one gRPC connection."""
    groups: dict[tuple[str, str, str, float, int], list[Summary]] = {}
    for run in runs:
        if not run.built_anew and not run.congestion:
            groups.setdefault((run.link, run.backend, run.payload, run.level, run.batch), []).append(run)
    for (link, backend, payload, level, batch), here in sorted(groups.items()):
        shared = "per-user" if level == 1 else "shared"
        grpc, http = _way(here, "grpc", shared, value), _way(here, "http", "per-user", value)
        if grpc and http and (ratio := over(grpc, http)):
            users = f", {level:g} users" if level > 1 else ""
            over_link = f" over {link}" if link else ""
            named = backend if payload == "fp32" else f"{backend}-{payload}"
            yield Comparison(f"({named} at batch {batch}{users}{over_link})", ratio)


def _way(runs: Runs, protocol: str, channels: str, value: Value) -> Spread | None:
    """The figure of one protocol's runs of one variant, on as few processes as there are; None without any.

    A single user has one connection whatever the channels; older ledgers do not tell HTTP's, which was
    always a connection each.
    """
    spoken = [run for run in runs if run.protocol == protocol]
    kinds = (channels, "") if protocol == "http" else (channels,)
    usable = [run for run in spoken if run.channels in kinds] or [run for run in spoken if run.serial]
    if not usable:
        return None
    first = min(usable, key=lambda run: (run.workers or 0, run.hosts or 0, run.variant))
    return spread_of([run for run in usable if run.way == first.way], value)


def jpeg_first(runs: Runs) -> Iterator[Comparison]:
    """PyTorch with JPEG over the best other with a tensor, for each batch, level and link."""
    cells: dict[tuple[str, float, int], list[Summary]] = {}
    for run in runs:
        if run.backend not in WITHOUT_MODEL:
            cells.setdefault((run.link, run.level, run.batch), []).append(run)
    for (link, level, batch), here in sorted(cells.items()):
        jpeg = _best(run for run in here if run.backend == "pytorch" and run.payload == "jpeg")
        other = _best(run for run in here if run.payload == "fp32")
        if jpeg and other and (ratio := over(jpeg, other)):
            where = f"(batch {batch}, {level:g} user{'s' * (level > 1)}{f' over {link}' if link else ''})"
            yield Comparison(where, ratio)


def _best(runs: Iterable[Summary]) -> Spread | None:
    """The spread of the fastest way among some runs; None without any."""
    ways: dict[object, list[Summary]] = {}
    for run in runs:
        ways.setdefault(run.way, []).append(run)
    found = [rate for of_way in ways.values() if (rate := spread_of(of_way, images_per_s))]
    return max(found, key=lambda rate: rate.median, default=None)
