"""The published study's H5, that on a slower GPU gRPC's penalty at batch 1 differs, between two sides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.cells_csv.rows import Row, published_files
from reports.cells_csv.sides import Side
from reports.compare.differences import no_other_gpu
from reports.compare.matching import P50, Figure, doubts_of, figure
from reports.compare.tables import stand_ins
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_study import of_published_study
from reports.stats.figures import pair_name, pairing, stems
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.paired import ALPHA, LEAST_REPEATS, LESS, MORE, holm, p_unlike, paired_ratio, told_apart
from reports.stats.repeats import grouped
from reports.topics.published.hypotheses import (
    CLAIMS,
    FALSE,
    INCONCLUSIVE,
    NOT_TESTED,
    PARTLY,
    PUBLISHED,
    TRUE,
)

Key = tuple[str, str, str]
"""Backend, as pairs of endpoints are named, payload, and what follows the users in a cell's name."""
Sides = tuple[Figure, Figure]
"""HTTP's p50 and gRPC's."""
FEW = f"fewer than {LEAST_REPEATS} repeats of both protocols on a side"
CAPTION = (
    "Shown is gRPC's p50 over HTTP's at batch 1 with one user, on each side with the 95 % CI of its repeats "
    "in pairs, and one ratio over the other (Welch's t of the logs). The claim is false where two "
    f"one-sided tests of 5 % place that within {LESS:g} to {MORE:g}, else true where it differs "
    "significantly from 1, both by Holm's method over the backends. Sides that do not state different GPUs "
    "do not test it. It is about the GPU alone: see What differs for the rest."
)


@dataclass(frozen=True)
class Penalty:
    """gRPC's p50 over HTTP's for one backend on two sides, `change` being the other's over the base's.

    `endpoint` is that of gRPC on the base. `untested` says why the sides do not test the claim, which is
    about two GPUs; empty where they do. `verdict` is true where the penalty differs, false where it is about
    the same, not tested or inconclusive.
    """

    backend: str
    variant: str
    endpoint: str
    base: LogRatio
    other: LogRatio
    change: LogRatio
    doubts: tuple[str, ...]
    untested: str
    verdict: str = INCONCLUSIVE

    @property
    def name(self) -> str:
        """The backend, with its variant where it has one."""
        return f"{self.backend} {self.variant}".rstrip()


def penalties(base: Side, other: Side) -> Iterator[Penalty]:
    """One for each backend that has both protocols on both sides, with one user and single images.

    None where a side is of anything else than the published studies' model.
    """
    if not (_of_their_model(base) and _of_their_model(other)):
        return
    ours, theirs, untested = _pairs(base), _pairs(other), no_other_gpu(base, other)
    found = [_penalty(key, ours[key], theirs[key], untested) for key in ours if key in theirs]
    tested = [it.change for it in found if not it.doubts]
    apart = iter(told_apart(tested))
    same = iter(p <= ALPHA for p in holm([p_unlike(it) for it in tested]))
    for it in found:
        if untested:
            yield replace(it, verdict=NOT_TESTED)
        elif it.doubts:
            yield it
        else:
            differs, alike = next(apart), next(same)
            yield replace(it, verdict=FALSE if alike else TRUE if differs else INCONCLUSIVE)


def _penalty(key: Key, ours: Sides, theirs: Sides, untested: str) -> Penalty:
    """What both sides have of a backend, not yet judged."""
    below, above = (paired_ratio(*map(_by_repeat, (grpc, http))) for http, grpc in (ours, theirs))
    change = log_ratio(*(_in_pairs(*side) for side in (theirs, ours)))
    doubts = tuple(dict.fromkeys(it.text for it in doubts_of(P50, (*ours, *theirs))))
    few = () if doubts or None not in (below.error, above.error) else (FEW,)
    return Penalty(key[0], key[2], ours[1].rows[0].endpoint, below, above, change, (*doubts, *few), untested)


def _by_repeat(side: Figure) -> dict[int, float]:
    """A file's rows are in order where they do not say which repeat they are of."""
    known = enumerate(zip(side.rows, side.values, strict=True), 1)
    return {int(row.numbers.get("repeat", place)): value for place, (row, value) in known}


def _in_pairs(http: Figure, grpc: Figure) -> list[float]:
    """gRPC's over HTTP's by repeat; of their means where no repeat has both."""
    under, over = _by_repeat(http), _by_repeat(grpc)
    return [over[key] / under[key] for key in over if key in under] or [paired_ratio(over, under).ratio]


def _of_their_model(side: Side) -> bool:
    """Whether it is one of their studies, or one of those that were published."""
    own = [row for row in side.rows if row.study not in published_files()]
    each = grouped(own, lambda row: row.study).items()
    return all(of_published_study(study, ((row.space, row.backend) for row in rows)) for study, rows in each)


def _pairs(side: Side) -> dict[Key, Sides]:
    """HTTP's p50 and gRPC's by backend, payload and variant."""
    single = (row for row in side.rows if row.load == "closed" and row.level == 1 and row.batch == 1)
    found: dict[Key, Sides] = {}
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
