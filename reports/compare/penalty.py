"""The published study's H5, that on a slower GPU gRPC's penalty at batch 1 differs, between two sides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from reports.cells_csv.rows import Row, published_files
from reports.cells_csv.sides import Side
from reports.compare.differences import no_other_gpu
from reports.compare.matching import P50, Figure, doubts_of, figure
from reports.compare.tables import stand_ins
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_study import of_published_study
from reports.stats.figures import pair_name, pairing, stems
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.repeats import grouped
from reports.topics.published.hypotheses import (
    CLAIMS,
    FALSE,
    INCONCLUSIVE,
    LESS,
    MORE,
    NOT_TESTED,
    PARTLY,
    PUBLISHED,
    TRUE,
)

Key = tuple[str, str, str]
"""Backend, as pairs of endpoints are named, payload, and what follows the users in a cell's name."""
CAPTION = (
    "Shown is gRPC's p50 over HTTP's at batch 1 with one user, on each side with its 95 % CI, and one ratio "
    "over the other. The claim is true where the CI of that excludes 1, false where it lies within "
    f"{LESS:g} to {MORE:g}, and not tested where the two do not state different GPUs. It is about the GPU "
    "alone: see What differs for the rest."
)


@dataclass(frozen=True)
class Penalty:
    """gRPC's p50 over HTTP's for one backend on two sides, `change` being the other's over the base's.

    `endpoint` is that of gRPC on the base. `untested` says why the sides do not test the claim, which is
    about two GPUs; empty where they do.
    """

    backend: str
    variant: str
    endpoint: str
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
    """One for each backend that has both protocols on both sides, with one user and single images.

    None where a side is of anything else than the published studies' model.
    """
    if not (_of_their_model(base) and _of_their_model(other)):
        return
    ours, theirs, untested = _pairs(base), _pairs(other), no_other_gpu(base, other)
    for key in [key for key in ours if key in theirs]:
        below, above = (log_ratio(grpc.values, http.values) for http, grpc in (ours[key], theirs[key]))
        doubts = tuple(dict.fromkeys(it.text for it in doubts_of(P50, (*ours[key], *theirs[key]))))
        endpoint = ours[key][1].rows[0].endpoint
        yield Penalty(key[0], key[2], endpoint, below, above, over(above, below), doubts, untested)


def _of_their_model(side: Side) -> bool:
    """Whether it is one of their studies, or one of those that were published."""
    own = [row for row in side.rows if row.study not in published_files()]
    each = grouped(own, lambda row: row.study).items()
    return all(of_published_study(study, ((row.space, row.backend) for row in rows)) for study, rows in each)


def _pairs(side: Side) -> dict[Key, tuple[Figure, Figure]]:
    """HTTP's p50 and gRPC's by backend, payload and variant."""
    single = (row for row in side.rows if row.load == "closed" and row.level == 1 and row.batch == 1)
    found: dict[Key, tuple[Figure, Figure]] = {}
    for (_, payload, _, variant), rows in grouped(single, lambda row: (*pairing(row), _variant(row))).items():
        ways = grouped(rows, lambda row: (row.protocol, row.endpoint))
        if sorted(protocol for protocol, _ in ways) == ["grpc", "http"]:
            grpc, http = (figure(ways[way], P50) for way in sorted(ways))
            if http.values and grpc.values:
                found[_backend(http.rows[0], grpc.rows[0]), payload, variant] = http, grpc
    return found


def _backend(http: Row, grpc: Row) -> str:
    name = pair_name(http, grpc)
    return http.backend if name in stems(http) else name


def _variant(row: Row) -> str:
    return row.cell.removeprefix(f"{row.endpoint}/b1/c1").strip("/")


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


def penalty_table(base: Side, others: Sequence[Side]) -> Table:
    """One row for each backend and other side."""
    notes = Footnotes()
    rows = (
        (
            TableCell(found.name, notes.marks(stand_ins((base, side), found.endpoint))),
            side.short,
            *(ratio.times for ratio in (found.base, found.other, found.change)),
            TableCell(found.verdict, notes.marks([found.untested] if found.untested else found.doubts)),
        )
        for side in others
        for found in penalties(base, side)
    )
    name = "candidate"
    ratios = (f"gRPC/HTTP, {base.short}", f"gRPC/HTTP, {name}", "ratio")
    title = "Hypothesis H5: gRPC's penalty at batch 1"
    told = " ".join(text for side in others if (text := penalty_said(base, side)))
    return table_of(
        title,
        ("backend", name, *ratios, "differs"),
        rows,
        caption=f"{told} {CAPTION}" if told else CAPTION,
        notes=notes,
        numeric=(2, 3, 4),
    )


def penalty_said(base: Side, other: Side) -> str:
    """The verdict on the hypothesis between two sides; empty where they have no figures of it."""
    found = list(penalties(base, other))
    if not found:
        return ""
    told = {it.verdict for it in found}
    clear = told - {INCONCLUSIVE}
    verdict = PARTLY if len(clear) > 1 else told.pop() if len(told) == 1 else INCONCLUSIVE
    why = [found[0].untested] if found[0].untested else []
    head = f"H5 ({CLAIMS['H5']}), {other.role} against {base.role}: {verdict}."
    return " ".join([head, *why, f"Published as: {PUBLISHED['H5']}."])
