"""The seeds' fifth hypothesis, that on a slower GPU gRPC's penalty at batch 1 differs, between two sides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from reports.cells_csv.side import Row, Side
from reports.compare.gpus import no_other_gpu
from reports.compare.matching import Figure, figure, one_run
from reports.compare.measures import P50
from reports.page.grid import COMPARABLE_RUNS
from reports.published_figures.hypotheses import LESS, MORE
from reports.published_figures.judge import FALSE, INCONCLUSIVE, NOT_TESTED, TRUE
from reports.stats.log_ratio import LogRatio, log_ratio

Key = tuple[str, str, str]
"""Backend, payload, and what follows the users in a cell's name."""


@dataclass(frozen=True)
class Penalty:
    """gRPC's p50 over HTTP's for one backend on two sides, `change` being the other's over the base's.

    `untested` says why the sides do not test the claim, which is of two GPUs; empty where they do.
    """

    backend: str
    variant: str
    base: LogRatio
    other: LogRatio
    change: LogRatio
    doubts: tuple[str, ...]
    untested: str

    @property
    def name(self) -> str:
        """The backend, with its variant where it has one."""
        return f"{self.backend} {self.variant}".rstrip()

    @property
    def verdict(self) -> str:
        """True where the penalty differs, false where it is about the same, not tested or inconclusive."""
        low, high = self.change.low, self.change.high
        if self.untested:
            return NOT_TESTED
        if self.doubts or low is None or high is None:
            return INCONCLUSIVE
        if self.change.significant:
            return TRUE
        return FALSE if low >= LESS and high <= MORE else INCONCLUSIVE


def penalties(base: Side, other: Side) -> Iterator[Penalty]:
    """One for each backend that has both protocols on both sides, with one user and single images."""
    ours, theirs, untested = _pairs(base), _pairs(other), no_other_gpu(base, other)
    for key in ours:
        if key in theirs:
            below, above = (log_ratio(grpc.values, http.values) for http, grpc in (ours[key], theirs[key]))
            figures = (*ours[key], *theirs[key])
            change = over(above, below)
            yield Penalty(key[0], key[2], below, above, change, _doubts(figures), untested)


def _pairs(side: Side) -> dict[Key, tuple[Figure, Figure]]:
    """HTTP's p50 and gRPC's by backend, payload and variant."""
    cells: dict[tuple[Key, str], list[Row]] = {}
    for row in side.rows:
        if row.load == "closed" and row.level == 1 and row.batch == 1:
            variant = row.cell.removeprefix(f"{row.endpoint}/b1/c1").strip("/")
            cells.setdefault(((row.backend, row.payload, variant), row.protocol), []).append(row)
    found = {key: figure(rows, P50) for key, rows in cells.items()}
    known = {key: figure for key, figure in found.items() if figure.values}
    return {
        key: (http, known[key, "grpc"])
        for (key, protocol), http in known.items()
        if protocol == "http" and (key, "grpc") in known
    }


def _doubts(figures: Sequence[Figure]) -> tuple[str, ...]:
    rows = [row for found in figures for row in found.rows]
    told = [f"{doubt.code}: {doubt.advice}" for row in rows for doubt in row.disqualified]
    single = [row for found in figures if len(found.values) < COMPARABLE_RUNS for row in found.rows]
    few = [one_run(single)] if single else []
    return tuple(dict.fromkeys([*told, *few]))


def over(top: LogRatio, bottom: LogRatio) -> LogRatio:
    """One ratio over another and its 95 % interval, from the intervals of both.

    Source: G. Y. Zou and A. Donner, Construction of confidence limits about effect measures: a general
    approach, Statistics in Medicine 27 (2008), for a difference, here of logs.
    """
    ratio, fewest = top.ratio / bottom.ratio, min(top.runs, bottom.runs)
    if top.low is None or top.high is None or bottom.low is None or bottom.high is None:
        return LogRatio(ratio, None, None, fewest)
    down = sqrt(log(top.ratio / top.low) ** 2 + log(bottom.high / bottom.ratio) ** 2)
    up = sqrt(log(top.high / top.ratio) ** 2 + log(bottom.ratio / bottom.low) ** 2)
    return LogRatio(ratio, ratio * exp(-down), ratio * exp(up), fewest)
