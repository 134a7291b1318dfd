"""From thresholds and studies to verdicts: every threshold on every cell that it is of, weighed together.

Judged, too: what a threshold asks for and the study does not have, the bound on failures that every study
has without declaring it, and thresholds that stopped a study.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reports.caveat import Trait
from reports.gates.absolute import judge_absolute
from reports.gates.compared import judge_baseline, judge_pair, unlike
from reports.gates.require import FAILURE_RATIO, GateError, Require
from reports.gates.select import Planned, cells_of, check_names, is_floor, pairs_of, unpaired
from reports.gates.source import Counting, GateSource, check_once
from reports.gates.thresholds import TEXTS, WARN, Gates, Threshold, fits
from reports.gates.verdict import FAIL, INCONCLUSIVE, PASS, Claim, Verdict, unknown, verdict_of
from reports.ledger.ledger import Record
from reports.ledger.records import LATER
from reports.stats.paired import holm
from reports.stats.shares import LEVEL

TOLD = 4
"""Values of the study in a sentence."""
FIX = "run it too, or choose the cells in the threshold"
OPTION = "--max-failure-ratio"


def judge(gates: Gates, source: GateSource, baseline: GateSource | None = None) -> list[Verdict]:
    """All verdicts, in the file's order; GateError where a threshold names what the study cannot have.

    The chance that any of those is a false alarm that decide the exit code is that of one, by Holm's method.
    """
    if gates.need_baseline and baseline is None:
        raise GateError(f"{gates.place}: a threshold is to a baseline, and none is named: give --baseline.")
    check_names(gates, source.cells, source.endpoints)
    check_once([*source.sides, *(baseline.sides if baseline else ())])
    counting = Counting(gates.thresholds, unlike(source, gates.may_differ))
    declared = [
        claim for one in gates.thresholds for claim in _claims(one, gates, source, baseline, counting)
    ]
    claims = [*declared, *own_bound(gates, source, counting)]
    found = [
        verdict_of(claim, chance, LEVEL / _looks(source), _line(gates, claim))
        for claim, chance in zip(claims, _chances(claims), strict=True)
    ]
    return [_of_unended(verdict, source) for verdict in found]


def _chances(claims: Sequence[Claim]) -> list[float]:
    """Of a false alarm in each, adjusted for all those of its severity that rest on evidence.

    Warnings are a family of their own: they decide no exit code, and make nothing that does less sensitive.
    """
    chances = [claim.evidence.p_broken if claim.evidence else 1.0 for claim in claims]
    for severity in {claim.threshold.severity for claim in claims}:
        family = [at for at, one in enumerate(claims) if one.threshold.severity == severity and one.evidence]
        for at, chance in zip(family, holm([chances[at] for at in family]), strict=True):
            chances[at] = chance
    return chances


def _looks(source: GateSource) -> int:
    """How often a study may be judged before it ends, each time with a chance to err (Bonferroni).

    With --repeat-until-decided that is after the first repeats, and after each that is added.
    """
    told = [side.header.get("options") or {} for side in source.sides]
    most = [int(one.get("repeat_until_decided") or 0) - int(one.get("repeats") or 1) + 1 for one in told]
    return max([1, *most])


def _line(gates: Gates, claim: Claim) -> int:
    number = claim.threshold.number
    return gates.lines[number - 1] if 0 < number <= len(gates.lines) else 1


def _claims(
    threshold: Threshold, gates: Gates, source: GateSource, baseline: GateSource | None, counting: Counting
) -> list[Claim]:
    found = [
        *_of_cells(threshold, gates, source, baseline, counting),
        *lost(threshold, source, baseline),
    ]
    absent = unmet(threshold, source.cells)
    if absent or not found:
        none = " or ".join(absent) or chosen(threshold, source.cells)
        found.append(unknown(threshold, "no cell", f"the study has none of {none}"))
    stops = stopped(threshold, source)
    return [stops.get(claim.cell, claim) for claim in found]


def _of_cells(
    threshold: Threshold, gates: Gates, source: GateSource, baseline: GateSource | None, counting: Counting
) -> Iterator[Claim]:
    if threshold.require.over:
        for over, under in pairs_of(threshold, source.cells):
            yield judge_pair(threshold, over, under, source, counting)
        return
    for cell in cells_of(threshold, source.cells):
        if threshold.require.to_baseline and baseline is not None:
            yield judge_baseline(threshold, cell, source, baseline, counting, gates.may_differ)
        else:
            yield judge_absolute(threshold, cell, source, counting)


def _of_unended(verdict: Verdict, source: GateSource) -> Verdict:
    """A study that was cut off passes nothing: what it would have measured is not known."""
    if verdict.outcome != PASS or not source.unended:
        return verdict
    cut = " and ".join(source.unended)
    why = f"{verdict.sentence.removesuffix('.')}, which is no pass, since {cut}."
    return replace(verdict, outcome=INCONCLUSIVE, sentence=why)


def lost(threshold: Threshold, source: GateSource, baseline: GateSource | None) -> Iterator[Claim]:
    """What would pass unseen: a cell that only the baseline has, and one that has no other for its ratio.

    The rates of a search are what it found, so none of its cells is missing.
    """
    if searched(source):
        return
    if threshold.require.to_baseline and baseline is not None:
        cells, before = source.cells, baseline.cells.items()
        gone = {name: _as_planned(name, row, cells) for name, row in before if name not in cells}
        for cell in cells_of(threshold, gone):
            yield unknown(threshold, cell, f"the baseline has it, and the study has not: {FIX}")
    for over, under in unpaired(threshold, source.cells):
        there, absent = (over, under) if over in source.cells else (under, over)
        why = f"the study has {there}, and not {absent}: {FIX}"
        yield unknown(threshold, f"{over} / {under}", why)


def _as_planned(name: str, row: Planned, cells: Mapping[str, Planned]) -> Planned:
    """With what a baseline's rows do not tell, such as the link: as cells of its variant have it.

    What older ones do not tell of its endpoint is as in the endpoint's other cells.
    """
    # what follows endpoint, batch and load in a cell's name
    variant = name.split("/")[3:]
    like = next((planned for other, planned in cells.items() if other.split("/")[3:] == variant), {})
    same = next((planned for planned in cells.values() if planned["endpoint"] == row["endpoint"]), {})
    told = {key: row.get(key) or same.get(key, "") for key in LATER}
    return {**like, **row, **told}


def unmet(threshold: Threshold, cells: Mapping[str, Planned]) -> list[str]:
    """What it asks for that no cell has, in words, and what they have: a larger study may have it."""
    return [
        f"{key} {' or '.join(absent)} ({_had(key, cells)})"
        for key, wanted in threshold.choice.items()
        if (absent := _absent(key, wanted, cells))
    ]


def _absent(key: str, wanted: str | frozenset[float], cells: Mapping[str, Planned]) -> list[str]:
    parts = [wanted] if isinstance(wanted, str) else [frozenset({number}) for number in sorted(wanted)]
    values = [planned.get(key) for planned in cells.values()]
    return [_said(key, part) for part in parts if not any(fits(value, part) for value in values)]


def chosen(threshold: Threshold, cells: Mapping[str, Planned]) -> str:
    """All that it asks for at once, in words."""
    told = [f"{key} {_said(key, value)}" for key, value in threshold.choice.items()]
    require = threshold.require
    ratio = [f"{require.over} and {require.under} ({_had('endpoint', cells)})"] if require.over else []
    return ", ".join([*ratio, *told]) or "any"


def _said(key: str, value: str | float | frozenset[float]) -> str:
    if isinstance(value, frozenset):
        return " or ".join(_said(key, number) for number in sorted(value))
    if isinstance(value, str):
        return value or "none"
    return f"{value:g} for all" if key in ("workers", "hosts") and not value else f"{value:g}"


def _had(key: str, cells: Mapping[str, Planned]) -> str:
    """What the cells have, of much only the first."""
    found = {planned.get(key) or ("" if key in TEXTS else 0) for planned in cells.values()}
    told = [_said(key, value) for value in sorted(found)]
    more = [f"{len(told) - TOLD:,} more"] if len(told) > TOLD else []
    return f"it has {', '.join([*told[:TOLD], *more]) or 'none'}"


def own_bound(gates: Gates, source: GateSource, counting: Counting) -> Iterator[Claim]:
    """Of the cells that no threshold on failures may fail, and of floors where a threshold names them.

    Without a model the client is easily the limit, so a floor that nobody asks for decides nothing.
    """
    if searched(source):
        return
    serious = [one for one in gates.thresholds if one.severity != WARN]
    on_failures = [one for one in serious if one.require.column == FAILURE_RATIO]
    covered = {cell for one in on_failures for cell in cells_of(one, source.cells)}
    named = {cell for one in serious for cell in _named(one, source)}
    bound = _bound(source)
    for cell, planned in source.cells.items():
        if cell not in covered and (cell in named or not is_floor(planned)):
            yield judge_absolute(bound, cell, source, counting)


def searched(source: GateSource) -> bool:
    """Whether all are searches for a rate: they overload the server on purpose, at rates that they find."""
    return all((side.header.get("options") or {}).get("find_rate") for side in source.sides)


def _named(threshold: Threshold, source: GateSource) -> list[str]:
    if threshold.require.over:
        return [cell for pair in pairs_of(threshold, source.cells) for cell in pair]
    return cells_of(threshold, source.cells)


def _bound(source: GateSource) -> Threshold:
    """The least that any of the studies allows."""
    told = [side.header.get("options") or {} for side in source.sides]
    least = min((float(one.get("max_failure_ratio") or 0) for one in told), default=0.0)
    require = Require(f"{FAILURE_RATIO} <= {least:g}", FAILURE_RATIO, at_most=True, bound=least)
    return Threshold(0, require, name=OPTION)


def stopped(threshold: Threshold, source: GateSource) -> Mapping[str, Claim]:
    """By cell, where this threshold stopped a study; one that was broken for sure goes before the others."""
    claims = [
        _claim(threshold, one, source)
        for one in source.stopped
        if one["threshold"] == threshold.number and one["require"] == threshold.require.text
    ]
    return {claim.cell: claim for claim in sorted(claims, key=lambda claim: claim.settled == FAIL)}


def _claim(threshold: Threshold, stop: Record, source: GateSource) -> Claim:
    cell, why = str(stop["cell"]), str(stop["why"]).rstrip(".")
    codes = [
        caveat.code
        for run in source.runs.get(cell, ())
        if run.repeat == stop["repeat"] and source.sides[run.study].status != "complete"
        for caveat in run.row.disqualified
        if not caveat.has(Trait.BY_STOPPING)
    ]
    outcome = INCONCLUSIVE if codes else FAIL
    if codes:
        why = f"{why}, and that run does not count ({', '.join(dict.fromkeys(codes))})"
    return Claim(threshold=threshold, cell=cell, settled=outcome, why=why, runs=1)
