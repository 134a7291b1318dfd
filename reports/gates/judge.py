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
from reports.gates.require import parse_require
from reports.gates.select import cells_of, check_names, pairs_of
from reports.gates.source import Source
from reports.gates.thresholds import Gates, Threshold
from reports.gates.verdict import Verdict, verdict_of

OPTION = "--max-failure-ratio"


def judge(gates: Gates, source: Source, baseline: Source | None = None) -> list[Verdict]:
    """All verdicts, in the file's order; GateError where a threshold names what the study cannot have.

    The chance that any of them is a false alarm is held at that of one, by Holm's method.
    """
    if gates.need_baseline and baseline is None:
        raise GateError(f"{gates.place}: a threshold is to a baseline, and none is named: give --baseline.")
    check_names(gates, source.cells, source.endpoints)
    thresholds = (*gates.thresholds, *own_bound(gates, source))
    counting = Counting.of(thresholds)
    claims = [
        claim
        for one in thresholds
        for claim in _stopped(one, source) or _claims(one, gates, source, baseline, counting)
    ]
    adjusted = holm([claim.evidence.p_broken if claim.evidence else 1.0 for claim in claims])
    found = [
        verdict_of(claim, chance, LEVEL, _line(gates, claim))
        for claim, chance in zip(claims, adjusted, strict=True)
    ]
    return [_of_unended(verdict, source) for verdict in found]


def _line(gates: Gates, claim: Claim) -> int:
    number = claim.threshold.number
    return gates.lines[number - 1] if 0 < number <= len(gates.lines) else 1


def own_bound(gates: Gates, source: Source) -> Iterator[Threshold]:
    """The bound on failures that every study has, of the cells that no threshold on them is of."""
    allowed = [(side.header.get("options") or {}).get("max_failure_ratio") or 0.0 for side in source.sides]
    own = [one for one in gates.thresholds if one.require.column == FAILURE_RATIO]
    covered = {cell for one in own for cell in cells_of(one, source.cells)}
    bound = Threshold(0, parse_require(f"{FAILURE_RATIO} <= {min(allowed, default=0.0):g}"), name=OPTION)
    for cell in cells_of(bound, source.cells):
        if cell not in covered:
            yield replace(bound, choice={"cell": cell})


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
    if not chosen:
        yield unknown(threshold, "no cell", f"the study has none that it is of: {_chosen(threshold)}")


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
        Claim(threshold=threshold, cell=str(one["cell"]), settled=FAIL, why=str(one["why"]), runs=1)
        for one in source.stopped
        if one["threshold"] == threshold.number and one["require"] == threshold.require.text
    ]


def _of_unended(verdict: Verdict, source: Source) -> Verdict:
    """A study that was cut off passes nothing: what it would have measured is not known."""
    if verdict.outcome != PASS or not source.unended:
        return verdict
    why = f"{'; '.join(source.unended)}, so this is no pass: {verdict.sentence}"
    return replace(verdict, outcome=INCONCLUSIVE, sentence=why)
