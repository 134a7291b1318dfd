"""JSON against binary tensors: what encoding takes, how large requests are, what remains end to end."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from reports.cells_csv.rows import Row, read_published
from reports.format import MISSING, digits, multiple
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, measured, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.published_figures.figures import MEAN, P50, Figure, of_column, sourced, their_endpoint
from reports.stats.figures import mean_ms, p50_ms
from reports.stats.log_ratio import log_ratio
from reports.stats.percentiles import estimated, mean_over
from reports.stats.repeats import (
    Runs,
    Value,
    absence,
    grouped,
    resting_on,
    values,
)
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of, images_per_request
from reports.summary.summary import Summary

JSON, BINARY = "json", "fp32"
KB = 1024
NUMBERS = 3 * 224 * 224
"""Of an image for the published model, and so in ledgers that do not say."""
PICTURE = re.compile(r"\[(\d+(?:, \d+)*)\] picture$")
"""How a header's words on an input end: with its shape, and what stands in it."""
THEIRS, ON_CPU = "step5a", "step5a-cpu"
HALF_A_DIGIT = 0.005
"""Of a published encode time, which has two decimals of a millisecond."""
ONE_RUN = "one run on a side: two digits, no interval"
PREPARED = "requests were made before the load: --client library has them made, and timed, while measuring"
ENOUGH_REQUESTS, AWAITED_PCT = 10, 10
AWAITED = f"the client had no core {AWAITED_PCT} % of the time or more, and that wait is in it: it takes less"
FEW = f"of fewer than {ENOUGH_REQUESTS} requests"
FAR = "a remote GPU over the internet; before and after differ in more than JSON, see their sources"


@dataclass(frozen=True)
class EncodingPair:
    """The serial runs of one batch, as JSON and as binary tensors over the same protocol."""

    name: str
    batch: Batch
    json: Runs
    binary: Runs

    @property
    def sides(self) -> tuple[Runs, Runs]:
        """Both, JSON first."""
        return self.json, self.binary


def pairs(study: Study) -> Iterator[EncodingPair]:
    """Each batch that one user sent as JSON and as binary to one model of a server, by one protocol."""
    plain = (run for run in study.runs if not run.is_floor and not run.compression and not run.shared_memory)
    serial = [run for run in plain if run.serial and run.payload in (JSON, BINARY)]
    for runs in grouped(serial, lambda run: (run.shares, run.model, run.protocol, run.variant)).values():
        json, binary = ([run for run in runs if run.payload == payload] for payload in (JSON, BINARY))
        if all(len({run.way for run in side}) == 1 for side in (json, binary)):
            for batch in sorted({batch_of(run) for run in (*json, *binary)}):
                sides = ([run for run in side if batch_of(run) == batch] for side in (json, binary))
                yield EncodingPair(study.named(binary[0].way), batch, *sides)


def encode_ms(run: Summary) -> float | None:
    """Making a request from its array, where that was done while measuring."""
    return run.phases.encode_ns / 1e6 if run.built_anew and run.phases.encode_ns else None


def payload_kb(run: Summary) -> float | None:
    """A request's body in units of 1,024 bytes."""
    return None if run.counts.request_bytes is None else run.counts.request_bytes / KB


def image_kb(run: Summary) -> float | None:
    """Likewise, by image."""
    whole = payload_kb(run)
    return None if whole is None else whole / images_per_request(run)


def ratio_said(pair: EncodingPair, value: Value) -> str | None:
    """652×, or 652× (600–708) with repeats; None where a side has no figure. Sizes do not vary by chance."""
    sides = [values(runs, value) for runs in pair.sides]
    if not all(sides):
        return None
    ratio = log_ratio(*sides)
    if value is payload_kb:
        return f"{multiple(ratio.ratio)}×"
    return ratio.times


def bytes_per_number(study: Study, pair: EncodingPair) -> str:
    """How many characters JSON spent on each number, brackets and names included."""
    sizes, numbers = values(pair.json, image_kb), numbers_in(study, pair)
    return digits(KB * sum(sizes) / len(sizes) / numbers) if sizes and numbers else MISSING


def numbers_in(study: Study, pair: EncodingPair) -> int:
    """How many numbers an image has that was sent both ways; 0 where that is not known."""
    endpoints = dict.fromkeys(run.endpoint for runs in pair.sides for run in runs)
    inputs = (text for name in endpoints for text in study.described.get(name, {}).get("inputs") or ())
    shapes = [found[1] for text in inputs if (found := PICTURE.search(str(text)))]
    if shapes:
        return prod(map(int, shapes[0].split(", ")))
    return NUMBERS if study.of_published_study else 0


def serialisation_finding(study: Study) -> str:
    """What JSON costs at the largest batch that was sent both ways; empty where nothing was."""
    both = [pair for pair in pairs(study) if ratio_said(pair, encode_ms) and ratio_said(pair, payload_kb)]
    if not both:
        return ""
    pair = max(both, key=lambda it: it.batch)
    took = [found.alone() if (found := mean_over(runs, encode_ms)) else MISSING for runs in pair.sides]
    times = str(ratio_said(pair, encode_ms))
    behind = [run for runs in pair.sides for run in resting_on(runs, encode_ms)]
    doubts = dict.fromkeys(doubts_of(behind, ENCODING))
    scarce = [*([] if "(" in times else ["in one run"]), *([FEW] if FEW in doubts else [])]
    others = "; ".join(doubt for doubt in doubts if doubt != FEW)
    hedged = (f", {' '.join(scarce)}" if scarce else "") + (f" ({others})" if others else "")
    return (
        f"Encoding JSON takes {took[0]} ms at batch {pair.batch} where binary takes {took[1]} ms: "
        f"{times}{hedged}; its payload is {ratio_said(pair, payload_kb)} as large."
    )


@dataclass(frozen=True)
class EncodingTable:
    """One of the tables: what is compared, ours and theirs.

    `of_client`: a figure of the client alone. `varies`: from request to request, not only with the pictures.
    `half_a_digit` is how far a rounded figure of theirs may be from what it was.
    """

    title: str
    caption: str
    unit: str
    value: Value
    figure: Figure
    half_a_digit: float = 0.0
    of_client: bool = False
    varies: bool = True


OF_THEIRS = "Published are p50 at batch 1 and means at others. "
"""Of a caption where theirs stand beside ours."""
RATIOS = "Ratios are of the repeats' geometric means, in brackets their 95 % CI (Welch's t of the logs)."
ENCODING = EncodingTable(
    "Encoding: JSON against binary",
    "Milliseconds from the images' array to the request's body on the client, means per request, one user. "
    "Both hold the same: taking the batch out of all pictures, writing it, joining the body, in memory that "
    "the process has used before. Kept to 1 µs. "
    f"{RATIOS}",
    "ms",
    encode_ms,
    of_column("encode_ms"),
    HALF_A_DIGIT,
    of_client=True,
)
PAYLOAD = EncodingTable(
    "Payload: JSON against binary",
    "KB (1,024 bytes) of a request's body. JSON writes a number with as many digits as it needs: how large "
    "it is depends on the pictures.",
    "KB",
    payload_kb,
    lambda it: it.numbers["request_bytes"] / KB if "request_bytes" in it.numbers else None,
    of_client=True,
    varies=False,
)
END_TO_END = EncodingTable(
    "End to end: JSON against binary",
    f"Milliseconds per request, p50, encoding included, one user. {OF_THEIRS}{RATIOS}",
    "p50 ms",
    p50_ms,
    lambda it: P50(it) or MEAN(it),
)


def serialisation_tables(study: Study) -> Iterator[Table]:
    """Encoding, payload and end to end, beside the published where those are of the model.

    None for a study without both payloads.
    """
    if found := list(pairs(study)):
        yield _table(study, ENCODING, found)
        yield _table(study, PAYLOAD, found, lambda pair: bytes_per_number(study, pair))
        yield _table(study, END_TO_END, found)
        if study.of_published_study:
            yield local_cpu(study, found)


def _head(pair: EncodingPair, notes: StudyNotes) -> TableCell:
    return TableCell(pair.name)


BATCH: Columns[EncodingPair] = text("batch", lambda pair: str(pair.batch))


def _table(
    study: Study,
    kind: EncodingTable,
    found: Sequence[EncodingPair],
    each: Callable[[EncodingPair], str] | None = None,
) -> Table:
    theirs = read_published(THEIRS) if study.of_published_study else ()

    published: Columns[EncodingPair] = Columns(
        ("published JSON", "published binary", "published ratio"),
        lambda pair, notes: _theirs(pair, kind, theirs, notes),
    )
    columns: Sequence[Columns[EncodingPair]] = (
        cell("endpoint", _head, numeric=False),
        BATCH,
        Columns(
            (f"JSON {kind.unit}", f"binary {kind.unit}", "JSON/binary"),
            lambda pair, notes: _ours(pair, kind, notes),
        ),
        *([text("bytes/number", each)] if each else []),
        *([published] if theirs else []),
    )
    caption = kind.caption if theirs else kind.caption.replace(OF_THEIRS, "")
    return study_table(study, kind.title, caption, columns, found)


def _ours(pair: EncodingPair, kind: EncodingTable, notes: StudyNotes) -> tuple[TableCell, ...]:
    sides = [_side(runs, kind, notes) for runs in pair.sides]
    told = ratio_said(pair, kind.value)
    if told is None:
        return tuple(sides)
    behind = [run for runs in pair.sides for run in resting_on(runs, kind.value)]
    alone = [ONE_RUN] if kind.varies and "(" not in told else []
    return (*sides, TableCell(told, notes.marks([*doubts_of(behind, kind), *alone])))


def _side(runs: Runs, kind: EncodingTable, notes: StudyNotes) -> TableCell:
    """The figure of the repeats with its interval; a dash and the reason without any."""
    behind = resting_on(runs, kind.value)
    found = estimated(notes.study, runs, kind.value)
    if found is None:
        made = kind is ENCODING and any(run.succeeded and not run.built_anew for run in runs)
        return TableCell(MISSING, notes.marks([PREPARED if made else absence(runs)]))
    return TableCell(found.said(), notes.marks(doubts_of(behind, kind)), found.value)


def doubts_of(runs: Runs, kind: EncodingTable) -> Iterator[str]:
    """What invalidates a figure; that the client was slow does so only where it is not the client's own."""
    for run in runs:
        if kind.varies and run.succeeded < ENOUGH_REQUESTS:
            yield FEW
        if kind.varies and (run.generator.cpu_wait_pct or 0) >= AWAITED_PCT:
            yield AWAITED
        for caveat in run.caveats:
            if caveat.tainted and not (kind.of_client and caveat.code == "client-bound"):
                yield f"{caveat.code}: {caveat.advice}"


def _theirs(
    pair: EncodingPair, kind: EncodingTable, figures: Sequence[Row], notes: Footnotes
) -> tuple[TableCell, ...]:
    """Their two figures and the ratio, with what its rounded decimals leave open."""
    told = [_twin(runs, kind, figures) for runs in pair.sides]
    cells = [_published(it, kind.figure, notes) for it in told]
    top, bottom = (kind.figure(it) if it else None for it in told)
    if not top or not bottom:
        return tuple(cells)
    text = f"{multiple(top / bottom)}×"
    if half := kind.half_a_digit:
        low, high = (digits((top + off) / (bottom - off)) for off in (-half, half))
        text = text if low == high else f"{low}–{high}×"
    return (*cells, TableCell(text, notes.marks([FAR] if kind is END_TO_END else [])))


def _published(it: Row | None, figure: Figure, notes: Footnotes) -> TableCell:
    return sourced(figure(it), it, notes) if it else TableCell(MISSING)


def _twin(runs: Runs, kind: EncodingTable, figures: Sequence[Row]) -> Row | None:
    """The published figure of the same payload and batch with one user, where this was published."""
    if not runs:
        return None
    endpoint = their_endpoint(runs[0], figures)
    alike = (it for it in figures if (it.endpoint, it.batch, it.level) == (endpoint, runs[0].batch, 1))
    return next((it for it in alike if kind.figure(it) is not None), None)


def local_cpu(study: Study, found: Sequence[EncodingPair]) -> Table:
    """Binary tensors by batch beside what was published of a Triton on a CPU; no ratio of two machines."""
    figures = read_published(ON_CPU)

    def theirs(pair: EncodingPair, notes: StudyNotes) -> Iterator[TableCell]:
        it = _twin(pair.binary, END_TO_END, figures)
        return (_published(it, figure, notes) for figure in (P50, MEAN))

    columns: Sequence[Columns[EncodingPair]] = (
        cell("endpoint", _head, numeric=False),
        BATCH,
        cell("p50 ms", lambda pair, notes: measured(pair.binary, p50_ms, notes)),
        cell("mean ms", lambda pair, notes: measured(pair.binary, mean_ms, notes)),
        Columns(("published p50", "published mean"), theirs),
    )
    return study_table(
        study,
        "Binary tensors beside a Triton on a CPU",
        "Milliseconds per request, one user, encoding included; published is of another machine.",
        columns,
        found,
    )


SERIALISATION = Question(
    "serialisation",
    "Serialisation",
    (serialisation_tables,),
    answered("Cost of JSON", serialisation_finding),
    Theme.SERIALISATION,
)
