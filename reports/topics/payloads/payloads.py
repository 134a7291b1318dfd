"""Heat maps of other payloads over float32 tensors, and of gRPC over HTTP: every batch and load that both
carried, with the repeats' interval; and what was found of both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2

from reports.format import MISSING, listed, plural
from reports.page.answer import AnswerRow, answered
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.failures import rankable, ranks
from reports.stats.figures import images_per_s, protocol_pairs
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import (
    ADVISED_REPEATS,
    LEAST_REPEATS,
    NOT_SIGNIFICANT,
    paired_ratio,
    told_apart,
    with_least_error,
)
from reports.stats.repeats import Runs, absence, by_repeat, grouped, resting_on, scarcity, taints
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.summary.summary import Summary, Way

TENSOR = "fp32"
NO_PICTURES = frozenset({"text", "random"})
"""Payloads that are nothing in place of a picture's tensor."""
FULL_HEAT = 2.0
"""The ratio, or one over it, that is shaded fully."""
FEW = f"fewer than {LEAST_REPEATS} repeats of both, so there is no 95 % CI and no mark"
MORE, LESS = "▲", "▼"
METHOD = (
    "Ratio of images/s with its own 95 % CI: Student's t of the logs of the repeats' ratios, in pairs, since "
    "a study interleaves its repeats."
)
SHADED = (
    "where it differs significantly from 1 among all ratios of the table: the chance of any false mark is "
    "5 % (Holm), so a CI that just excludes 1 may have none. Marked ratios are shaded by their size."
)
WIDER = "Few pairs mark large differences only; more repeats would mark smaller ones."
PAYLOADS = (
    "Payloads over float32 tensors",
    f"Same model, same protocol. {METHOD} {MORE} the payload, {LESS} the tensor is faster, {SHADED}",
    "payload",
)
PROTOCOLS = (
    "gRPC over HTTP",
    f"{METHOD} {MORE} gRPC, {LESS} HTTP is faster, {SHADED}",
    "backend",
)
"""Title, caption and what the rows are of."""
Pair = tuple[Way, Way]
"""What stands under the ratio, and what over it."""
Sides = tuple[Runs, Runs]
"""The repeats of both ways at one batch and number of users, the lower of the ratio first."""


@dataclass(frozen=True)
class Compared:
    """Two ways at one batch and number of users; `told`: their ratio differs significantly from 1."""

    sides: Sides
    ratio: LogRatio | None
    told: bool = False

    @property
    def counted(self) -> Sides:
        """The repeats that the ratio rests on."""
        under, over = (resting_on(side, images_per_s) for side in self.sides)
        return under, over

    @property
    def sound(self) -> bool:
        """Whether a conclusion may rest on it: it has valid repeats, and both sides may be ranked."""
        valid = not any(run.tainted for side in self.counted for run in side)
        return self.ratio is not None and valid and all(map(ranks, self.sides))


Key = tuple[str, float, Batch]
"""A pair's name, the users, the batch."""


def payloads_map(study: Study) -> Table:
    """One row for each payload beside a tensor's, and number of users, one column for each batch."""
    return ratio_map(study, PAYLOADS, payload_pairs(study))


def protocols_map(study: Study) -> Table:
    """One row for each pair of protocols and number of users, one column for each batch."""
    return ratio_map(study, PROTOCOLS, protocol_pairs(study, closed_runs(study)))


def closed_runs(study: Study) -> list[Summary]:
    """What can be compared: closed-loop load, no floors."""
    return [run for run in study.runs if run.closed and not run.is_floor]


def ratio_map(study: Study, about: tuple[str, str, str], pairs: Mapping[str, Pair]) -> Table:
    """One row for each pair of ways and number of users in closed-loop load, one column for each batch."""
    title, caption, head = about
    found = all_compared(closed_runs(study), pairs)
    batches = sorted({batch for _, _, batch in found})
    rows = dict.fromkeys((name, level) for name, level, _ in found)

    def ratios(row: tuple[str, float], notes: StudyNotes) -> Iterator[TableCell]:
        return (_cell(found.get((*row, batch)), notes) for batch in batches)

    columns: Sequence[Columns[tuple[str, float]]] = (
        cell(head, lambda row, _: TableCell(row[0]), numeric=False),
        text("users", lambda row: f"{row[1]:g}"),
        Columns(tuple(f"batch {batch}" for batch in batches), ratios),
    )
    few = any(it.ratio and LEAST_REPEATS <= it.ratio.runs < ADVISED_REPEATS for it in found.values())
    return study_table(study, title, f"{caption} {WIDER}" if few else caption, columns, rows)


def all_compared(runs: Runs, pairs: Mapping[str, Pair]) -> dict[Key, Compared]:
    """Every batch and number of users of each pair; which differ from 1 is judged of all together."""
    found: dict[Key, Compared] = {}
    for name, pair in pairs.items():
        cells = grouped((run for run in runs if run.way in pair), lambda run: (run.level, batch_of(run)))
        for (level, batch), here in sorted(cells.items()):
            found[name, level, batch] = compared(here, pair)
    sound = {key: it.ratio for key, it in found.items() if it.sound and it.ratio}
    told = dict(zip(sound, told_apart(with_least_error(list(sound.values()))), strict=True))
    return {key: replace(it, told=told.get(key, False)) for key, it in found.items()}


def compared(runs: Runs, pair: Pair) -> Compared:
    """The ratio of the runs of one batch and load, None where a side has no figure; not yet judged."""
    under, over = ([run for run in runs if run.way == way] for way in pair)
    sides = [by_repeat(side, images_per_s) for side in (over, under)]
    return Compared((under, over), paired_ratio(*sides) if all(sides) else None)


def _cell(found: Compared | None, notes: Footnotes) -> TableCell:
    """The ratio of one batch and load; empty where none was planned, a dash where a side has no figure."""
    if not found:
        return TableCell("")
    if not found.ratio:
        lacking = next(side for side, known in zip(found.sides, found.counted, strict=True) if not known)
        return TableCell(MISSING, notes.marks([absence(lacking)]))
    under, over = found.counted
    doubts = [*taints([*under, *over]), *([FEW] if found.ratio.low is None else [])]
    heat = heat_of(found.ratio.ratio) if found.told else None
    return TableCell(shown(found.ratio, found.told), notes.marks(doubts), found.ratio.ratio, heat=heat)


def shown(found: LogRatio, told: bool) -> str:
    """▲ 1.41× (1.32–1.51)."""
    mark = "" if not told else f"{MORE} " if found.ratio > 1 else f"{LESS} "
    return f"{mark}{found.times}"


def heat_of(ratio: float) -> float:
    """How a ratio is shaded, from -1 to 1: its logarithm, full at twice as much and at half."""
    return max(-1.0, min(1.0, log2(ratio) / log2(FULL_HEAT)))


def payload_pairs(study: Study) -> dict[str, Pair]:
    """`onnx-jpeg-grpc / onnx-grpc` and so on: under each the tensor's way by the same protocol.

    Where there are several such ways, none of them is the one to compare.
    """
    runs = closed_runs(study)
    tensors = grouped((run for run in runs if run.payload == TENSOR), _asked)
    unders = {asked: {run.way for run in of} for asked, of in tensors.items()}
    pictures = (run for run in runs if run.payload not in {TENSOR, *NO_PICTURES})
    others = {run.way: unders.get(_asked(run), set()) for run in pictures}
    return {
        f"{study.named(way)} / {study.named(under)}": (under, way)
        for way in study.ways
        if len(others.get(way, ())) == 1
        for under in others[way]
    }


def payloads_finding(study: Study) -> str:
    """What each payload is worth at batch 1 with the most users that both had; empty without any."""
    said, counts = [], []
    for name, pair in payload_pairs(study).items():
        closed = [run for run in rankable(closed_runs(study)) if run.way in pair]
        runs = [run for run in closed if run.batch == 1 and not run.tainted]
        levels = [{run.level for run in runs if run.way == way} for way in pair]
        if shared := levels[0] & levels[1]:
            found = compared([run for run in runs if run.level == max(shared)], pair).ratio
            users = "one user" if max(shared) == 1 else f"{max(shared):g} users"
            said += [f"{name} {found.times} with {users}"] if found else []
            counts += [found.runs] if found else []
    if not said:
        return ""
    grain = scarcity(counts)
    return f"Images per second at batch 1 by payload: {'; '.join([*said, grain] if grain else said)}."


def _asked(run: Summary) -> tuple[str, str, str, str]:
    """What two payloads must have in common to be compared: server, space, protocol and variant."""
    return run.facts.passes_to or run.shares or run.backend, run.space, run.protocol, run.variant


def protocols_answer(study: Study) -> AnswerRow | None:
    """gRPC over HTTP: each batch with one user, and batch 1 or a mix with the most users that both had."""
    every = all_compared(closed_runs(study), protocol_pairs(study, closed_runs(study)))
    found = {name: of for name in dict.fromkeys(name for name, *_ in every) if (of := _at(every, name))}
    if not found:
        return None
    pairs = [ratio.runs for of in found.values() for ratio, _ in of.values()]
    settled = max(pairs) >= LEAST_REPEATS
    said_of = _ratios_said if settled else _range_said
    detail = f"gRPC over HTTP, images/s: {'; '.join(f'{name} {said_of(of)}' for name, of in found.items())}."
    if not settled:
        return AnswerRow("HTTP or gRPC", f"Not settled: {_few(max(pairs))}.", detail)
    said = "; ".join(f"{name}: {_faster(ratios)}" for name, ratios in found.items())
    more = f" {WIDER}" if min(pairs) < ADVISED_REPEATS and NOT_SIGNIFICANT in said else ""
    return AnswerRow("HTTP or gRPC", f"{said}.", detail + more)


Ratios = Mapping[str, tuple[LogRatio, bool]]
"""By load in words: a ratio, and whether it differs significantly from 1."""


def _at(every: Mapping[Key, Compared], name: str) -> Ratios:
    """Each batch with one user, and batch 1 or a mix with the most; a range would read as a doubt."""
    sound = {key[1:]: it for key, it in every.items() if key[0] == name and it.sound}
    least = [(level, batch) for level, batch in sound if batch.mixed or batch.most == 1]
    most = max(least, default=(1.0, Batch(1, 1)))
    told = {f"batch {batch}": it for (level, batch), it in sound.items() if level == 1}
    told |= {f"{most[0]:g} users": sound[most]} if most[0] > 1 else {}
    return {where: (it.ratio, it.told) for where, it in told.items() if it.ratio}


def _ratios_said(ratios: Ratios) -> str:
    return ", ".join(f"{found.times} at {where}" for where, (found, _) in ratios.items())


def _range_said(ratios: Ratios) -> str:
    """0.875× to 1.07×: of what is not settled, one by one says no more."""
    found = sorted((ratio for ratio, _ in ratios.values()), key=lambda one: one.ratio)
    return f"{found[0].times} to {found[-1].times}" if found[1:] else _ratios_said(ratios)


def _faster(ratios: Ratios) -> str:
    """Which is faster where: gRPC faster at batch 1 and batch 4, not significantly different at 8 users."""
    groups = grouped(ratios, lambda at: _which(*ratios[at]))
    return ", ".join(f"{which} at {listed(those)}" for which, those in groups.items())


def _which(found: LogRatio, told: bool) -> str:
    if found.low is None:
        return f"not settled ({_few(found.runs)})"
    if not told:
        return NOT_SIGNIFICANT
    return "gRPC faster" if found.ratio > 1 else "HTTP faster"


def _few(repeats: int) -> str:
    return f"{plural(repeats, 'repeat')} per cell, {LEAST_REPEATS} are needed"


PROTOCOLS_ASKED = Question(
    "protocols",
    "HTTP against gRPC",
    (protocols_map,),
    protocols_answer,
    Theme.PROTOCOLS,
    ("contention",),
)
PAYLOADS_ASKED = Question(
    "payloads", "Payloads", (payloads_map,), answered("Payload", payloads_finding), Theme.PAYLOADS
)
