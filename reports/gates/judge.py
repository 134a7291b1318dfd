"""From thresholds and studies to verdicts: every threshold on every cell that it is of, weighed together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.gates.absolute import judge_absolute
from reports.gates.claim import FAIL, INCONCLUSIVE, PASS, Claim, unknown
from reports.gates.columns import FAILURE_RATIO
from reports.gates.compared import judge_baseline, judge_pair
from reports.gates.counting import Counting
from reports.gates.error import GateError
from reports.gates.evidence import LEVEL, holm
from reports.gates.require import Require
from reports.gates.select import cells_of, check_names, pairs_of, unmet
from reports.gates.source import Source
from reports.gates.thresholds import WARN, Gates, Threshold
from reports.gates.verdict import Verdict, verdict_of

OPTION = "--max-failure-ratio"


def judge(gates: Gates, source: Source, baseline: Source | None = None) -> list[Verdict]:
    """All verdicts, in the file's order; GateError where a threshold names what the study cannot have.

    The chance that any of those is a false alarm that decide the exit code is that of one, by Holm's method.
    """
    if gates.need_baseline and baseline is None:
        raise GateError(f"{gates.place}: a threshold is to a baseline, and none is named: give --baseline.")
    check_names(gates, source.cells, source.endpoints)
    counting = Counting.of(gates.thresholds)
    declared = [
        claim
        for one in gates.thresholds
        for claim in _stopped(one, source) or _claims(one, gates, source, baseline, counting)
    ]
    claims = [*declared, *_own_bound(gates, source, counting)]
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


def _own_bound(gates: Gates, source: Source, counting: Counting) -> Iterator[Claim]:
    """The bound on failures that every study has, of the cells that no threshold on them may fail."""
    allowed = [
        float((side.header.get("options") or {}).get("max_failure_ratio") or 0) for side in source.sides
    ]
    least = min(allowed, default=0.0)
    own = [one for one in gates.thresholds if one.require.column == FAILURE_RATIO and one.severity != WARN]
    covered = {cell for one in own for cell in cells_of(one, source.cells)}
    require = Require(f"{FAILURE_RATIO} <= {least:g}", FAILURE_RATIO, at_most=True, bound=least)
    bound = Threshold(0, require, name=OPTION)
    for cell in source.cells:
        if cell not in covered:
            yield judge_absolute(bound, cell, source, counting)


def _claims(
    threshold: Threshold, gates: Gates, source: Source, baseline: Source | None, counting: Counting
) -> Iterator[Claim]:
    if threshold.require.over:
        pairs = pairs_of(threshold, source.cells)
        for over, under in pairs:
            yield judge_pair(threshold, over, under, source, counting)
        chosen: Sequence[object] = pairs
    else:
        cells = chosen = cells_of(threshold, source.cells)
        for cell in cells:
            if threshold.require.to_baseline and baseline is not None:
                yield judge_baseline(threshold, cell, source, baseline, counting, gates.may_differ)
            else:
                yield judge_absolute(threshold, cell, source, counting)
    missing = unmet(threshold, source.cells)
    if missing or not chosen:
        none = " or ".join(missing) or _chosen(threshold)
        yield unknown(threshold, "no cell", f"the study has none of {none}")


def _chosen(threshold: Threshold) -> str:
    told = [
        f"{key} {value if isinstance(value, str) else ' or '.join(f'{one:g}' for one in sorted(value))}"
        for key, value in threshold.choice.items()
    ]
    ratio = [f"{threshold.require.over} and {threshold.require.under}"] if threshold.require.over else []
    return ", ".join([*ratio, *told]) or "any"


def _stopped(threshold: Threshold, source: Source) -> list[Claim]:
    """Where this threshold stopped the study: what was certain then, and no more was measured."""
    return [
        Claim(
            threshold=threshold, cell=str(one["cell"]), settled=FAIL, why=str(one["why"]).rstrip("."), runs=1
        )
        for one in source.stopped
        if one["threshold"] == threshold.number and one["require"] == threshold.require.text
    ]


def _of_unended(verdict: Verdict, source: Source) -> Verdict:
    """A study that was cut off passes nothing: what it would have measured is not known."""
    if verdict.outcome != PASS or not source.unended:
        return verdict
    cut = " and ".join(source.unended)
    why = f"{verdict.sentence.removesuffix('.')}, which is no pass, since {cut}."
    return replace(verdict, outcome=INCONCLUSIVE, sentence=why)
