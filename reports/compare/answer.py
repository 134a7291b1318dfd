"""What a comparison says first: is the candidate faster, by how much, what differs, what would confirm it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log

from reports.cells_csv.sides import PUBLISHED, Side
from reports.compare.differences import Difference, listed
from reports.compare.failures import FEWER, MORE, failures
from reports.compare.matching import (
    ALIKE,
    FASTER,
    INVALID,
    MAIN,
    NONE_SHOWN,
    SLOWER,
    UNCONFIRMED,
    Figure,
    Match,
    magnitude,
    matches,
)
from reports.format import multiple, plural, sentence
from reports.page.answer import AnswerRow, repeated
from reports.stats.paired import ADVISED_REPEATS, LEAST_REPEATS, NOT_SIGNIFICANT

KINDS = (
    *(FASTER, SLOWER, NOT_SIGNIFICANT),
    *(f"{way}, {UNCONFIRMED}" for way in (FASTER, SLOWER, ALIKE)),
    INVALID,
)


def answers(sides: Sequence[Side], found: Sequence[Difference]) -> Iterator[AnswerRow]:
    """The rows of the first screen: some of each candidate, and one of what differs."""
    base, *candidates = sides
    for other in candidates:
        yield from _against(base, other)
    yield AnswerRow("What differs", *what_differs(sides, found))


def _against(base: Side, other: Side) -> Iterator[AnswerRow]:
    pair, common = headline(base, other), base.cells.keys() & other.cells.keys()
    which = "" if other.short == other.role else f", {other.short}"
    if not pair:
        cells = plural(len(common), "common cell")
        why = f"no measure in common in {cells}" if common else "no cell in common"
        told = f"{other.label} cannot be compared with {base.label}: {why}."
        yield AnswerRow(f"Verdict{which}", sentence(told))
        return
    yield AnswerRow(f"Verdict{which}", *verdict(base, other, pair))
    yield AnswerRow(f"Difference{which}", *by_how_much(pair))
    if told := failed(base, other):
        yield AnswerRow(f"Failed requests{which}", told)
    yield AnswerRow(f"Next step{which}", next_step(base, other, pair), command=rerun(other, pair))


def headline(base: Side, other: Side) -> list[Match]:
    """One measure of each common cell: images per second, or p50 or the mean where that is not compared."""
    found: dict[str, Match] = {}
    for it in matches(base, other, MAIN):
        found.setdefault(it.cell, it)
    return [found[cell] for cell in base.cells if cell in found]


def verdict(base: Side, other: Side, pair: Sequence[Match]) -> tuple[str, str]:
    """Whether the candidate is faster, and how many cells came out how."""
    counts = Counter(it.kind for it in pair)
    by = " or ".join(dict.fromkeys(it.measure.spoken for it in pair))
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    told = told.replace(f", {UNCONFIRMED}", f" but {UNCONFIRMED}")
    said = _compared(counts, len(pair)).format(base=base.label, other=other.label)
    return sentence(said), f"Of {plural(len(pair), 'cell')} compared, by {by}: {told}."


def _compared(counts: Counter[str], cells: int) -> str:
    """The sentence that so many cells of each kind allow, with room for the names."""
    faster, slower = counts[FASTER], counts[SLOWER]
    if faster and slower:
        return "{other} is faster than {base} in some cells and slower in others."
    if faster or slower:
        word, count = (FASTER, faster) if faster else (SLOWER, slower)
        where = "" if count == cells else f" in {count} of {plural(cells, 'cell')}"
        return f"{{other}} is {word} than {{base}}{where}."
    if counts[NOT_SIGNIFICANT]:
        return f"{{other}} is {NOT_SIGNIFICANT} from {{base}}."
    return "not confirmed whether {other} is faster than {base}."


def by_how_much(pair: Sequence[Match]) -> tuple[str, str]:
    """The largest confirmed difference in each direction, or else the largest that was measured."""
    if all(it.ratio.ratio == 1 for it in pair):
        return "None, all values are equal.", ""
    if confirmed := [it for it in pair if it.verdict in (FASTER, SLOWER)]:
        return _largest(confirmed), "The largest confirmed each way."
    if tested := [it for it in pair if it.verdict == NONE_SHOWN]:
        most = max(max(it.ratio.high or 1, 1 / (it.ratio.low or 1)) for it in tested)
        return f"At most {multiple(most)}× either way, by the 95 % CIs.", ""
    valid = [it for it in pair if not it.invalid]
    if not valid:
        return "Unknown, no cell has valid runs on both sides.", ""
    return _largest(valid), "The largest measured each way; none is confirmed."


def _largest(pair: Iterable[Match]) -> str:
    """The largest in each direction, the faster first."""
    kept = sorted(pair, key=lambda it: log(it.speedup.ratio), reverse=True)
    ends = [kept[0]] if kept[0].speedup.ratio > 1 else []
    ends += [kept[-1]] if kept[-1].speedup.ratio < 1 else []
    return f"{'; '.join(map(_told, ends or kept[:1]))}."


def _told(it: Match) -> str:
    """A cell with its ratio, what is known of that, and both values."""
    other, base = it.measure.form(it.other.median), it.measure.form(it.base.median)
    return f"{it.cell} {times(it)} ({other} against {base} {it.measure.unit})"


def times(it: Match) -> str:
    """2.00× faster, 95 % CI 1.91–2.09; or 2.70× slower, large, unconfirmed: 1 run."""
    speedup = it.speedup
    ratio, word = (speedup, FASTER) if speedup.ratio >= 1 else (speedup.inverse, SLOWER)
    told = f"{multiple(ratio.ratio)}× {word}"
    if it.doubts:
        return f"{told}, {magnitude(ratio.ratio)}, {UNCONFIRMED}: {', '.join(one.short for one in it.doubts)}"
    return f"{told}, 95 % CI {ratio.times.partition('(')[2].rstrip(')')}"


def next_step(base: Side, other: Side, pair: Sequence[Match]) -> str:
    """What to fix or rerun before the open cells have a verdict."""
    told = [text for text in (*_to_fix(base, other, pair), *_to_rerun(base, other, pair)) if text]
    if told:
        return sentence(f"{'; '.join(told)}.")
    return "None needed: every cell has a 95 % CI, and more repeats would narrow it."


def _to_fix(base: Side, other: Side, pair: Sequence[Match]) -> Iterator[str]:
    """The caveats that invalidate runs of ours, which a rerun would only show again."""
    for side, figures in _figures(base, other, pair):
        codes = dict.fromkeys(one.code for it in figures for row in it.rows for one in row.disqualified)
        if codes and side.kind != PUBLISHED:
            yield f"fix what invalidates runs of {_the(side)} ({', '.join(codes)})"


def _to_rerun(base: Side, other: Side, pair: Sequence[Match]) -> Iterator[str]:
    """Which sides have too few runs; those that others published cannot be run again."""
    lacking = [side for side, figures in _figures(base, other, pair) if few(figures)]
    ours, theirs = (
        [side for side in lacking if (side.kind == PUBLISHED) is published] for published in (False, True)
    )
    if ours:
        which = "both" if len(ours) > 1 else _the(ours[0])
        yield f"rerun {which} with --repeats {ADVISED_REPEATS} to confirm"
    if theirs:
        verb = "has" if len(theirs) == 1 else "have"
        yield f"{' and '.join(map(_the, theirs))} {verb} 1 published run a cell, which cannot be repeated"


def _the(side: Side) -> str:
    return f"the {side.role}" if side.short == side.role else side.role


def _figures(base: Side, other: Side, pair: Sequence[Match]) -> list[tuple[Side, list[Figure]]]:
    """Both sides with what each has of the cells."""
    return [(base, [it.base for it in pair]), (other, [it.other for it in pair])]


def few(figures: Iterable[Figure]) -> bool:
    """Whether a cell has too few runs to compare."""
    return any(len(it.values) < LEAST_REPEATS for it in figures)


def rerun(side: Side, pair: Sequence[Match]) -> str:
    """The candidate's own command with repeats; empty where it has enough or its command is not known."""
    command = str((side.header.get("options") or {}).get("command") or "")
    return repeated(command, ADVISED_REPEATS) if few(it.other for it in pair) else ""


def what_differs(sides: Sequence[Side], found: Sequence[Difference]) -> tuple[str, str]:
    """How many things, the first few of them with their values, and of which sides nothing is known."""
    silent = " and ".join(side.role for side in sides if not side.known)
    unknown = [f"The environment of {silent} is not known."] if silent else []
    if not found:
        return "Nothing that is stated of environment, options and images.", " ".join(unknown)
    spoiled = sum(bool(it.spoils) for it in found)
    noted = f", {spoiled} of which the notes above explain" if spoiled else ""
    return f"{plural(len(found), 'fact')}{noted}.", " ".join([f"{listed(sides, found)}.", *unknown])


def failed(base: Side, other: Side) -> str:
    """In how many cells more or fewer requests failed; empty where none differs."""
    counts = Counter(it.verdict for it in failures(base, other) if it.any)
    told = [f"{word} in {plural(counts[word], 'cell')}" for word in (MORE, FEWER) if counts[word]]
    return sentence(f"{' and '.join(told)}.") if told else ""
