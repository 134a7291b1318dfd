"""Bounds on ratios, of two endpoints or of a study to its baseline, where they can be compared."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import ceil, log
from statistics import fmean

from reports.format import plural
from reports.gates.evidence import Mean, apart_of, mean_of, of_ratio
from reports.gates.require import results_needed
from reports.gates.select import Planned
from reports.gates.source import Counted, Counting, GateSource, Taken
from reports.gates.thresholds import Threshold
from reports.gates.verdict import LEAST_REPEATS, Claim, unknown

LEAST_STUDIES = 3
"""Of a baseline that was not measured in turns: fewer do not tell how much the machine changes in between."""
APART = "not measured in turns: judged by how much the baseline's studies differ among themselves"
MEND = "more repeats would not decide, measuring the two in turns may"
BASELINES = "the baseline's"
Key = tuple[int, int]
NEARLY = {"workers": 0.0, "hosts": 0.0, "request_bytes": 0.02}
"""By what part columns may differ: a request's size shows another image size or encoding, and JPEGs vary."""
TOLD = 3


def judge_pair(threshold: Threshold, over: str, under: str, source: GateSource, counting: Counting) -> Claim:
    """What the repeats of two cells of a study say of their ratio: in pairs, since it interleaves them."""
    name = f"{over} / {under}"
    sides = [
        _counted(threshold, source.runs.get(cell, ()), source.cells[cell], counting) for cell in (over, under)
    ]
    if lacking := next(_lacking(threshold, (over, under), sides), ""):
        return unknown(threshold, name, lacking, *_missing(threshold, sides))
    values = [_by(side, threshold, lambda run: (run.study, run.repeat)) for side in sides]
    paired = [key for key in values[0] if key in values[1]]
    if len(paired) < LEAST_REPEATS:
        why = f"{plural(len(paired), 'repeat')} of both count, and a ratio takes {LEAST_REPEATS}"
        return unknown(threshold, name, why, len(paired), LEAST_REPEATS - len(paired))
    logs = mean_of([values[0][key] - values[1][key] for key in paired])
    return _claim(threshold, name, logs, _note((over, under), sides))


def judge_baseline(
    threshold: Threshold,
    cell: str,
    source: GateSource,
    baseline: GateSource,
    counting: Counting,
    may_differ: Sequence[str] = (),
) -> Claim:
    """What the runs of a cell say of its ratio to the baseline: in pairs where they were made in turns."""
    if cell not in source.runs:
        return unknown(threshold, cell, "no run of it was begun")
    if cell not in baseline.runs:
        return unknown(threshold, cell, "the baseline has no such cell")
    if different := what_differs(source, baseline, cell, may_differ):
        why = f"the conditions are not the baseline's: {different}; may_differ of [baseline] can allow that"
        return unknown(threshold, cell, why)
    if varying := what_varies(baseline, cell, may_differ):
        why = (
            f"the baseline's studies differ in {varying}: make it of alike ones, or let may_differ of "
            "[baseline] allow that"
        )
        return unknown(threshold, cell, why)
    planned = source.cells[cell]
    sides = [_counted(threshold, each.runs[cell], planned, counting) for each in (source, baseline)]
    if lacking := next(_lacking(threshold, (cell, BASELINES), sides), ""):
        return unknown(threshold, cell, lacking, *_missing(threshold, sides))
    if turns := in_turns(source, baseline):
        return _in_pairs(threshold, cell, sides, turns)
    return _apart(threshold, cell, sides)


def _apart(threshold: Threshold, cell: str, sides: Sequence[Counted]) -> Claim:
    """Of studies made at different times: each counts once, since the machine changes in between."""
    now, then = (list(_by(side, threshold, lambda run: (run.study, 0)).values()) for side in sides)
    if len(then) < LEAST_STUDIES:
        why = (
            "the two were not measured in turns, and how much the machine changes from one time to another "
            f"is not known: measure them in turns, or make the baseline of {LEAST_STUDIES} studies or more"
        )
        return unknown(threshold, cell, why, len(then))
    note = "; ".join(filter(None, (APART, _note((cell, BASELINES), sides))))
    return replace(_claim(threshold, cell, apart_of(now, then), note), mend=MEND)


def _in_pairs(
    threshold: Threshold, cell: str, sides: Sequence[Counted], turns: Sequence[tuple[int, int]]
) -> Claim:
    """Each turn's own ratio, of all the runs that both have in it."""
    values = [_by(side, threshold, lambda run: (run.study, 0)) for side in sides]
    logs = [
        values[0][ours, 0] - values[1][theirs, 0]
        for ours, theirs in turns
        if (ours, 0) in values[0] and (theirs, 0) in values[1]
    ]
    if len(logs) < LEAST_REPEATS:
        why = f"{plural(len(logs), 'turn')} of both count, and a ratio takes {LEAST_REPEATS}"
        return unknown(threshold, cell, why, len(logs), LEAST_REPEATS - len(logs))
    return _claim(threshold, cell, mean_of(logs), _note((cell, BASELINES), sides))


def in_turns(source: GateSource, baseline: GateSource) -> list[tuple[int, int]]:
    """Which study of each belong together, where they were started in turns; none where they were not."""
    began = sorted(
        (str(side.header.get("started_utc", "")), which, number)
        for which, each in enumerate((source, baseline))
        for number, side in enumerate(each.sides)
    )
    turns = list(zip(began[::2], began[1::2], strict=False))
    if len(began) % 2 or len(turns) < LEAST_REPEATS or any(a[1] == b[1] for a, b in turns):
        return []
    return [(a[2], b[2]) if a[1] == 0 else (b[2], a[2]) for a, b in turns]


def _claim(threshold: Threshold, name: str, logs: Mean, note: str) -> Claim:
    require = threshold.require
    evidence = of_ratio(logs, require.bound, threshold.tolerated, require.at_most)
    return Claim(threshold=threshold, cell=name, evidence=evidence, note=note, runs=logs.runs)


def _note(names: Sequence[str], sides: Sequence[Counted]) -> str:
    """Which runs of which side were left out."""
    return "; ".join(f"of {name}: {side.said}" for name, side in zip(names, sides, strict=True) if side.said)


def _counted(threshold: Threshold, runs: Sequence[Taken], planned: Planned, counting: Counting) -> Counted:
    """The runs of a cell that count and have a value above 0, of which there is a logarithm."""
    column = threshold.require.column
    found = counting.counted(runs, planned, column)
    kept = tuple(run for run in found.runs if run.known(column) > 0)
    without = len(found.runs) - len(kept)
    said = (f"{plural(without, 'run')} left out ({column} is 0)",) if without else ()
    return Counted(kept, (*found.left_out, *said))


def _lacking(threshold: Threshold, names: Sequence[str], sides: Sequence[Counted]) -> Iterator[str]:
    """What a side has too little of."""
    needed = results_needed(threshold.require.column)
    for name, side in zip(names, sides, strict=True):
        if not side.runs:
            yield f"no run of {name} counts: {side.said or 'none was begun'}"
        elif (results := _results(side)) < needed:
            yield f"{name}: {results:,.0f} results, and {threshold.require.column} takes {needed:,}"


def _missing(threshold: Threshold, sides: Sequence[Counted]) -> tuple[int, int | None]:
    """How many runs there are on the side that has fewer, and how many more of them it takes."""
    fewest, needed = min(len(side.runs) for side in sides), results_needed(threshold.require.column)
    if not fewest:
        return 0, None
    more = [
        ceil((needed - _results(side)) / (_results(side) / len(side.runs)))
        for side in sides
        if _results(side) < needed
    ]
    return fewest, max(more, default=None)


def _results(side: Counted) -> float:
    return sum(run.row.succeeded or 0 for run in side.runs)


def _by(side: Counted, threshold: Threshold, key: Callable[[Taken], Key]) -> Mapping[Key, float]:
    """The mean of the logs of the runs with the same key."""
    found: dict[Key, list[float]] = defaultdict(list)
    for run in side.runs:
        found[key(run)].append(_log(run, threshold))
    return {of: fmean(logs) for of, logs in found.items()}


def _log(run: Taken, threshold: Threshold) -> float:
    return log(run.known(threshold.require.column))


@dataclass(frozen=True)
class _Met:
    """What some studies state of themselves, and the runs of a cell that they made."""

    facts: Sequence[Mapping[str, str]]
    runs: Sequence[Taken]

    @classmethod
    def of(cls, source: GateSource, runs: Sequence[Taken]) -> "_Met":
        """Of the studies that made these runs of one cell."""
        facts = source.conditions[runs[0].row.endpoint]
        return cls([facts[number] for number in dict.fromkeys(run.study for run in runs)], runs)

    def said(self, what: str) -> frozenset[str]:
        """All that is stated of one name."""
        return frozenset(facts.get(what, "not stated") for facts in self.facts)

    def largest(self, column: str) -> float:
        """Of a column over all runs, 0 where it is not known."""
        return max(run.row.numbers.get(column, 0.0) for run in self.runs)


def what_differs(now: GateSource, then: GateSource, cell: str, may_differ: Sequence[str]) -> str:
    """What does not match of a cell that both have, in words; empty where all does that must."""
    met = [_Met.of(source, source.runs[cell]) for source in (now, then)]
    found = _differences(met, may_differ)
    return _told(f"{what} ({ours} here, {theirs} in the baseline)" for what, (ours, theirs) in found)


def what_varies(source: GateSource, cell: str, may_differ: Sequence[str]) -> str:
    """What the studies of one side that have a cell do not have in common, in words."""
    by_study: dict[int, list[Taken]] = {}
    for run in source.runs[cell]:
        by_study.setdefault(run.study, []).append(run)
    found = _differences([_Met.of(source, runs) for runs in by_study.values()], may_differ)
    return _told(f"{what} ({' or '.join(sorted(set(each)))})" for what, each in found)


def unlike(source: GateSource, may_differ: Sequence[str]) -> Mapping[str, str]:
    """By cell, why what its studies measured is not of one thing; those of one thing are left out."""
    found = {cell: what_varies(source, cell, may_differ) for cell in source.runs}
    mend = "judge each directory alone, or let may_differ of [baseline] allow that"
    return {cell: f"its studies differ in {what}: {mend}" for cell, what in found.items() if what}


def _differences(some: Sequence[_Met], may_differ: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """By name, in what they are not alike and must be, and what each of them has."""
    for what in dict.fromkeys(name for met in some for facts in met.facts for name in facts):
        said = [met.said(what) for met in some]
        if len(set(said)) > 1 and not _any(may_differ, what):
            yield what, [" or ".join(sorted(one)) for one in said]
    for column, nearly in NEARLY.items():
        known = [value for met in some if (value := met.largest(column))]
        if known and max(known) > min(known) * (1 + nearly) and not _any(may_differ, column):
            yield column, [f"{value:,.0f}" for value in known]


def _any(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _told(found: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    told = list(found)
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return "; ".join(told[:TOLD]) + more
