"""What repeats of one thing say of the machine, as readers see it: how it varies, and what it can tell."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from reports.format import digits, plural
from reports.gates.calibrate import Alarms, Alike, alarms
from reports.gates.power import SURE, detectable, pairs_for, pairs_to_pass, passable
from reports.gates.thresholds import LEAST_EFFECT
from reports.page.table import Cell, Table
from reports.topics.report import Page, Section

POWERS = (0.80, SURE)
USUAL_PAIRS = 10
CHANGES = (0.05, 0.10, 0.15)
TOO_MANY = "more than 1,000"
VARIES = (
    "Neighbouring repeats are pairs. Spread, within and drift are standard deviations of one run in percent: "
    "among all, among the two of a pair, and what the two have in common, of which comparing in turns is "
    "free. False alarms are the share, in percent, of the sign flips of the pairs in which a gate would say "
    "fail; in brackets, where any effect counts."
)
TELLS = (
    "The smallest slowdown, in percent, that is caught in 80 % of all cases / in 95 %, all cells being gated "
    "together. 10 % slower is 1.1 times the latency, or the rate divided by 1.1."
)
Columns = Sequence[Sequence[Alike]]


def calibrate_page(
    found: Sequence[Alike], pairs: Sequence[int], lacking: Sequence[str], command: str
) -> Page:
    """Of cells with enough pairs, column by column; `lacking` are sentences on those with fewer."""
    columns = [list(some) for _, some in groupby(found, key=lambda one: one.column)]
    cells, runs = len({one.cell for one in found}), sum(len(one.logs) for one in columns[0])
    return Page(
        title="Calibration: one and the same thing, measured again and again",
        facts=f"{plural(cells, 'cell')}, {plural(runs, 'run')} that count",
        notices=tuple(lacking),
        findings=(*(text for some in columns for text in _advice(some)), _caution(found)),
        sections=(Section("Noise", (_varies(columns), _tells(columns, pairs)), brief=True),),
        commands=(command,),
    )


def _advice(found: Sequence[Alike]) -> Iterator[str]:
    """What to write into a file of thresholds, by the cell that varies most."""
    worst = max(found, key=lambda one: one.of_a_pair)
    needed = passable(worst.of_a_pair, USUAL_PAIRS)
    default = _many(pairs_to_pass(worst.of_a_pair, LEAST_EFFECT))
    passes = f"what did not change passes in {100 * SURE:g} % of all cases"
    if needed <= LEAST_EFFECT:
        yield f"{worst.column}: least_effect = {LEAST_EFFECT:g} does; {passes} with {default} pairs."
    else:
        yield (
            f"{worst.column}: put least_effect = {needed:g}, and {passes} with {USUAL_PAIRS} pairs; at the "
            f"default of {LEAST_EFFECT:g} it takes {default} pairs."
        )
    changes = [(change, pairs_for(change, worst.of_a_pair, len(found))) for change in CHANGES]
    told = ", ".join(f"{_many(takes)} for {100 * change:g} %" for change, takes in changes)
    yield (
        f"{worst.column}: pairs that it takes to catch a change in {100 * SURE:g} % of all cases, with a "
        f"least_effect of half of it: {told}."
    )


def _caution(found: Sequence[Alike]) -> str:
    """How far the spreads may be off, which rest on as many values as there are pairs."""
    fewest = min(found, key=lambda one: one.pairs)
    return (
        f"{plural(fewest.pairs, 'pair')} tell a spread only roughly: the true one may be "
        f"{digits(fewest.doubt)} times as large."
    )


def _varies(columns: Columns) -> Table:
    heads = ("cell", "column", "runs", "spread", "within", "drift", "false alarms")
    rows = tuple(row for found in columns for row in _noise_rows(found))
    return Table("How the machine varies", VARIES, heads, rows, numeric=frozenset({2, 3, 4, 5, 6}))


def _noise_rows(found: Sequence[Alike]) -> Iterator[tuple[Cell, ...]]:
    each, together = alarms(found, LEAST_EFFECT)
    for one, its in zip(found, each, strict=True):
        runs = Cell(str(len(one.logs)), value=len(one.logs))
        spreads = (_percent_cell(share) for share in (one.spread, one.within, one.drift))
        yield (Cell(one.cell), Cell(one.column), runs, *spreads, _alarm_cell(its))
    if len(found) > 1:
        any_of_them = f"any of {len(found)}, gated together"
        yield (Cell(any_of_them), Cell(found[0].column), *[Cell("")] * 4, _alarm_cell(together))


def _tells(columns: Columns, pairs: Sequence[int]) -> Table:
    heads = ("cell", "column", *(f"{count} pairs" for count in pairs))
    rows = tuple(
        (Cell(one.cell), Cell(one.column), *(_detectable_cell(one, count, len(found)) for count in pairs))
        for found in columns
        for one in found
    )
    caption = f"{TELLS} The least effect is {LEAST_EFFECT:g}."
    return Table("What it can tell", caption, heads, rows, numeric=frozenset(range(2, len(heads))))


def _detectable_cell(one: Alike, pairs: int, cells: int) -> Cell:
    shares = [detectable(one.of_a_pair, pairs, cells, power, LEAST_EFFECT) for power in POWERS]
    return Cell(" / ".join(map(_percent, shares)), value=shares[-1])


def _percent_cell(share: float) -> Cell:
    return Cell(_percent(share), value=share)


def _alarm_cell(found: Alarms) -> Cell:
    return Cell(f"{_percent(found.least_effect)} ({_percent(found.any_effect)})", value=found.least_effect)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _many(pairs: int | None) -> str:
    return TOO_MANY if pairs is None else str(pairs)
