"""Heat maps of other payloads over float32 tensors, and of gRPC over HTTP: every batch and load that both
carried, with the repeats' interval; and what was found of both.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log2

from reports.format import MISSING, listed
from reports.page.answer import AnswerRow, answered
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import images_per_s, protocol_pairs
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.repeats import Runs, absence, grouped, resting_on, scarcity, taints, values
from reports.study.study import Study
from reports.summary.summary import Summary, Way

TENSOR = "fp32"
NO_PICTURES = frozenset({"text", "random"})
"""Payloads that are nothing in place of a picture's tensor."""
FULL_HEAT = 2.0
"""The ratio, or one over it, that is shaded fully."""
ONE_RUN = "one run on a side, so there is no 95 % CI"
MORE, LESS = "▲", "▼"
METHOD = "Ratio of images/s, geometric means of the repeats, with its 95 % CI (Welch's t of the logs)."
SHADED = "where the CI excludes 1, and shaded by the ratio."
PAYLOADS = (
    "Payloads over float32 tensors",
    f"Same model, same protocol. {METHOD} {MORE} the payload, {LESS} the tensor is faster, {SHADED}",
    "payload",
)
PROTOCOLS = ("gRPC over HTTP", f"{METHOD} {MORE} gRPC, {LESS} HTTP is faster, {SHADED}", "backend")
"""Title, caption and what the rows are of."""
Pair = tuple[Way, Way]
"""What stands under the ratio, and what over it."""
Row = tuple[str, Pair, Runs]
"""A pair's name, and the runs of both at one number of users."""


def payloads_map(study: Study) -> Table:
    """One row for each payload beside a tensor's, and number of users, one column for each batch."""
    return ratio_map(study, PAYLOADS, payload_pairs(study))


def protocols_map(study: Study) -> Table:
    """One row for each pair of protocols and number of users, one column for each batch."""
    return ratio_map(study, PROTOCOLS, protocol_pairs(study, closed_runs(study)))


def closed_runs(study: Study) -> list[Summary]:
    """What can be compared: closed-loop load, no floors."""
    return [run for run in study.runs if run.load == "closed" and not run.is_floor]


def ratio_map(study: Study, about: tuple[str, str, str], pairs: Mapping[str, Pair]) -> Table:
    """One row for each pair of ways and number of users in closed-loop load, one column for each batch."""
    title, caption, head = about
    paired = [run for run in closed_runs(study) if any(run.way in pair for pair in pairs.values())]
    batches = sorted({run.batch for run in paired})

    def ratios(row: Row, notes: StudyNotes) -> Iterator[TableCell]:
        _, pair, runs = row
        return (_cell([run for run in runs if run.batch == batch], pair, notes) for batch in batches)

    columns: Sequence[Columns[Row]] = (
        cell(head, lambda row, _: TableCell(row[0]), numeric=False),
        text("users", lambda row: f"{row[2][0].level:g}"),
        Columns(tuple(f"batch {batch}" for batch in batches), ratios),
    )
    return study_table(study, title, caption, columns, _rows(pairs, paired))


def _rows(pairs: Mapping[str, Pair], runs: Runs) -> Iterator[Row]:
    for name, pair in pairs.items():
        here = [run for run in runs if run.way in pair]
        for level in sorted({run.level for run in here}):
            yield name, pair, [run for run in here if run.level == level]


def compared(runs: Sequence[Summary], pair: Pair) -> LogRatio | None:
    """The ratio of the runs of one batch and load; None where a side has no figure."""
    under, over = (values([run for run in runs if run.way == way], images_per_s) for way in pair)
    return log_ratio(over, under) if over and under else None


def _cell(runs: Sequence[Summary], pair: Pair, notes: Footnotes) -> TableCell:
    """The ratio of one batch and load; empty where none was planned, a dash where a side has no figure."""
    if not runs:
        return TableCell("")
    sides, found = [[run for run in runs if run.way == way] for way in pair], compared(runs, pair)
    counted = [resting_on(side, images_per_s) for side in sides]
    if found is None:
        lacking = next(side for side, known in zip(sides, counted, strict=True) if not known)
        return TableCell(MISSING, notes.marks([absence(lacking)]))
    doubts = [*taints([*counted[0], *counted[1]]), *([ONE_RUN] if found.low is None else [])]
    heat = heat_of(found.ratio) if found.significant else None
    return TableCell(shown(found), notes.marks(doubts), found.ratio, heat=heat)


def shown(found: LogRatio) -> str:
    """▲ 1.41× (1.32–1.51)."""
    mark = "" if not found.significant else f"{MORE} " if found.ratio > 1 else f"{LESS} "
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
        runs = [run for run in closed_runs(study) if run.way in pair and run.batch == 1 and not run.tainted]
        levels = [{run.level for run in runs if run.way == way} for way in pair]
        if shared := levels[0] & levels[1]:
            found = compared([run for run in runs if run.level == max(shared)], pair)
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
    """gRPC over HTTP: each batch with one user, and batch 1 with the most users that both had."""
    clean = [run for run in closed_runs(study) if run.succeeded and not run.tainted]
    pairs = protocol_pairs(study, clean)
    found = {backend: known for backend, pair in pairs.items() if (known := _compared_at(clean, pair))}
    if not found:
        return None
    told = "; ".join(f"{backend} {_ratios_said(ratios)}" for backend, ratios in found.items())
    detail = f"gRPC over HTTP, images/s: {told}."
    if all(ratio.low is None for ratios in found.values() for ratio in ratios.values()):
        return AnswerRow("HTTP or gRPC", "Not settled: 1 run per cell.", detail)
    said = "; ".join(f"{backend}: {_faster(ratios)}" for backend, ratios in found.items())
    return AnswerRow("HTTP or gRPC", f"{said}.", detail)


def _compared_at(runs: Sequence[Summary], pair: Pair) -> dict[str, LogRatio]:
    """By load in words; a range over batches would read as a doubt."""
    serial = sorted({run.batch for run in runs if run.serial})
    cells = [(f"batch {at}", [run for run in runs if run.serial and run.batch == at]) for at in serial]
    single = [run for run in runs if run.batch == 1]
    levels = [{run.level for run in single if run.way == way} for way in pair]
    most = max(levels[0] & levels[1], default=1)
    if most > 1:
        cells.append((f"{most:g} users", [run for run in single if run.level == most]))
    return {name: found for name, of in cells if (found := compared(of, pair))}


def _ratios_said(ratios: Mapping[str, LogRatio]) -> str:
    return ", ".join(f"{found.times} at {where}" for where, found in ratios.items())


def _faster(ratios: Mapping[str, LogRatio]) -> str:
    """Which is faster where: gRPC faster at batch 1 and batch 4, no difference shown at 8 users."""
    groups = grouped(ratios, lambda at: _which(ratios[at]))
    return ", ".join(f"{which} at {listed(those)}" for which, those in groups.items())


def _which(found: LogRatio) -> str:
    if found.low is None:
        return "not settled (1 run)"
    if not found.significant:
        return "no difference shown"
    return "gRPC faster" if found.ratio > 1 else "HTTP faster"


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
