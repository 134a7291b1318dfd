"""From thresholds and studies to verdicts: every threshold on every cell that it is of, weighed together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.gates.absolute import judge_absolute
from reports.gates.claim import INCONCLUSIVE, PASS, Claim, unknown
from reports.gates.compared import judge_baseline, judge_pair
from reports.gates.counting import Counting
from reports.gates.error import GateError
from reports.gates.evidence import LEVEL, holm
from reports.gates.missing import chosen, lost, unmet
from reports.gates.own_bound import own_bound
from reports.gates.same import unlike
from reports.gates.select import cells_of, check_names, pairs_of
from reports.gates.source import Source, check_once
from reports.gates.stopped import stopped
from reports.gates.thresholds import Gates, Threshold
from reports.gates.verdict import Verdict, verdict_of


def judge(gates: Gates, source: Source, baseline: Source | None = None) -> list[Verdict]:
    """All verdicts, in the file's order; GateError where a threshold names what the study cannot have.

    The chance that any of those is a false alarm that decide the exit code is that of one, by Holm's method.
    """
    if gates.need_baseline and baseline is None:
        raise GateError(f"{gates.place}: a threshold is to a baseline, and none is named: give --baseline.")
    check_names(gates, source.cells, source.endpoints)
    check_once([*source.sides, *(baseline.sides if baseline else ())])
    counting = Counting.of(gates.thresholds, unlike(source, gates.may_differ))
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
    """Of a false alarm in each, adjusted for all those of its severity in which chance has a part.

    Warnings are a family of their own: they decide no exit code, and make nothing that does less sensitive.
    """
    chances = [claim.evidence.p_broken if claim.evidence else 1.0 for claim in claims]
    for severity in {claim.threshold.severity for claim in claims}:
        family = [at for at, claim in enumerate(claims) if _estimated(claim, severity)]
        for at, chance in zip(family, holm([chances[at] for at in family]), strict=True):
            chances[at] = chance
    return chances


def _looks(source: Source) -> int:
    """How often a study may be judged before it ends, each time with a chance to err (Bonferroni).

    With --repeat-until-decided that is after the first repeats, and after each that is added.
    """
    told = [side.header.get("options") or {} for side in source.sides]
    most = [int(one.get("repeat_until_decided") or 0) - int(one.get("repeats") or 1) + 1 for one in told]
    return max([1, *most])


def _estimated(claim: Claim, severity: str) -> bool:
    found = claim.evidence
    return found is not None and not found.certain and claim.threshold.severity == severity


def _line(gates: Gates, claim: Claim) -> int:
    number = claim.threshold.number
    return gates.lines[number - 1] if 0 < number <= len(gates.lines) else 1


def _claims(
    threshold: Threshold, gates: Gates, source: Source, baseline: Source | None, counting: Counting
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
    threshold: Threshold, gates: Gates, source: Source, baseline: Source | None, counting: Counting
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


def _of_unended(verdict: Verdict, source: Source) -> Verdict:
    """A study that was cut off passes nothing: what it would have measured is not known."""
    if verdict.outcome != PASS or not source.unended:
        return verdict
    cut = " and ".join(source.unended)
    why = f"{verdict.sentence.removesuffix('.')}, which is no pass, since {cut}."
    return replace(verdict, outcome=INCONCLUSIVE, sentence=why)
