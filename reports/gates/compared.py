"""Bounds on ratios, of two endpoints or of a study to its baseline, where they can be compared."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
from math import ceil, log
from statistics import fmean
from typing import TypeVar

from reports.format import plural
from reports.gates.evidence import apart_of, of_ratio
from reports.gates.require import results_needed
from reports.gates.select import Planned
from reports.gates.source import Counted, Counting, GateSource, Taken
from reports.gates.thresholds import Threshold
from reports.gates.verdict import Claim, unknown
from reports.stats.paired import LEAST_REPEATS, Mean, mean_of
from reports.stats.repeats import grouped

LEAST_STUDIES = 3
"""Of a baseline that was not measured in turns: fewer do not tell how much the machine changes in between."""
APART = "not measured in turns: judged by how much the baseline's studies differ among themselves"
FIX = "more repeats would not decide, measuring the two in turns may"
BASELINES = "the baseline's"
Key = TypeVar("Key")
NEARLY = {"workers": 0.0, "hosts": 0.0, "request_bytes": 0.02}
"""By what part columns may differ: a request's size shows another image size or encoding, and JPEGs vary."""
TOLD = 3


def judge_pair(threshold: Threshold, over: str, under: str, source: GateSource, counting: Counting) -> Claim:
    """What the repeats of two cells of a study say of their ratio: in pairs, since it interleaves them."""
    name = f"{over} / {under}"
    sides = [
        _counted(threshold, source.runs.get(cell, ()), source.cells[cell], counting) for cell in (over, under)
    ]
    if lacking := _lacking(threshold, name, (over, under), sides):
        return lacking
    ours, theirs = (_by(side, threshold, lambda run: (run.study, run.repeat)) for side in sides)
    logs = [ours[key] - theirs[key] for key in ours if key in theirs]
    return _in_pairs(threshold, name, logs, "repeat", _note((over, under), sides))


def judge_baseline(
    threshold: Threshold,
    cell: str,
    source: GateSource,
    baseline: GateSource,
    counting: Counting,
    may_differ: Sequence[str],
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
    if lacking := _lacking(threshold, cell, (cell, BASELINES), sides):
        return lacking
    now, then = (_by(side, threshold, lambda run: run.study) for side in sides)
    note = _note((cell, BASELINES), sides)
    if turns := in_turns(source, baseline):
        # each turn's own ratio, of all the runs that both have in it
        logs = [now[ours] - then[theirs] for ours, theirs in turns if ours in now and theirs in then]
        return _in_pairs(threshold, cell, logs, "turn", note)
    return _apart(threshold, cell, list(now.values()), list(then.values()), note)


def _apart(threshold: Threshold, cell: str, now: Sequence[float], then: Sequence[float], note: str) -> Claim:
    """Of studies made at different times: each counts once, since the machine changes in between."""
    if len(then) < LEAST_STUDIES:
        why = (
            "the two were not measured in turns, and how much the machine changes from one time to another "
            f"is not known: measure them in turns, or make the baseline of {LEAST_STUDIES} studies or more"
        )
        return unknown(threshold, cell, why, len(then))
    whole = "; ".join(filter(None, (APART, note)))
    return replace(_claim(threshold, cell, apart_of(now, then), whole), fix=FIX)


def _in_pairs(threshold: Threshold, name: str, logs: Sequence[float], each: str, note: str) -> Claim:
    """Of what was measured in pairs, each of them a repeat or a turn: the logs of their ratios."""
    if len(logs) < LEAST_REPEATS:
        why = f"{plural(len(logs), each)} of both count, and a ratio takes {LEAST_REPEATS}"
        return unknown(threshold, name, why, len(logs), LEAST_REPEATS - len(logs))
    return _claim(threshold, name, mean_of(logs), note)


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
    said = f"{plural(without, 'run')} left out ({column} is 0)" if without else ""
    return Counted(kept, "; ".join(filter(None, (found.said, said))))


def _lacking(threshold: Threshold, name: str, names: Sequence[str], sides: Sequence[Counted]) -> Claim | None:
    """That a side has too few results, and how many more runs like those of the side with fewer it takes."""
    column, needed = threshold.require.column, results_needed(threshold.require.column)
    short = [(its, side) for its, side in zip(names, sides, strict=True) if side.results < needed]
    if not short:
        return None
    its, side = short[0]
    why = f"{its}: {side.results:,.0f} results, and {column} takes {needed:,}"
    if not side.runs:
        why = f"no run of {its} counts: {side.said or 'none was begun'}"
    fewest, more = min(len(side.runs) for side in sides), None
    if fewest:
        more = max(ceil((needed - side.results) / (side.results / len(side.runs))) for _, side in short)
    return unknown(threshold, name, why, fewest, more)


def _by(side: Counted, threshold: Threshold, key: Callable[[Taken], Key]) -> dict[Key, float]:
    """The mean of the logs of the runs with the same key."""
    column = threshold.require.column
    return {of: fmean(log(run.known(column)) for run in runs) for of, runs in grouped(side.runs, key).items()}


def what_differs(now: GateSource, then: GateSource, cell: str, may_differ: Sequence[str]) -> str:
    """What does not match of a cell that both have, in words; empty where all does that must."""
    found = _differences([(source, source.runs[cell]) for source in (now, then)], may_differ)
    return _told(f"{what} ({ours} here, {theirs} in the baseline)" for what, (ours, theirs) in found)


def what_varies(source: GateSource, cell: str, may_differ: Sequence[str]) -> str:
    """What the studies of one side that have a cell do not have in common, in words."""
    by_study = groupby(source.runs[cell], key=lambda run: run.study)
    found = _differences([(source, list(runs)) for _, runs in by_study], may_differ)
    return _told(f"{what} ({' or '.join(sorted(set(each)))})" for what, each in found)


def unlike(source: GateSource, may_differ: Sequence[str]) -> Mapping[str, str]:
    """By cell, why what its studies measured is not of one thing; those of one thing are left out."""
    found = {cell: what_varies(source, cell, may_differ) for cell in source.runs}
    fix = "judge each directory alone, or let may_differ of [baseline] allow that"
    return {cell: f"its studies differ in {what}: {fix}" for cell, what in found.items() if what}


def _differences(
    some: Sequence[tuple[GateSource, Sequence[Taken]]], may_differ: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """By name, in what runs of a cell are not alike and must be, and what each of those `some` has."""
    stated = [_stated(source, runs) for source, runs in some]
    for what in dict.fromkeys(name for each in stated for facts in each for name in facts):
        said = [frozenset(facts.get(what, "not stated") for facts in each) for each in stated]
        if len(set(said)) > 1 and not _any(may_differ, what):
            yield what, [" or ".join(sorted(one)) for one in said]
    for column, nearly in NEARLY.items():
        largest = [max(run.row.numbers.get(column, 0.0) for run in runs) for _, runs in some]
        known = list(filter(None, largest))
        if known and max(known) > min(known) * (1 + nearly) and not _any(may_differ, column):
            yield column, [f"{value:,.0f}" for value in known]


def _stated(source: GateSource, runs: Sequence[Taken]) -> list[Mapping[str, str]]:
    """What the studies that made these runs of one cell state of themselves."""
    facts = source.conditions[runs[0].row.endpoint]
    return [facts[number] for number in dict.fromkeys(run.study for run in runs)]


def _any(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _told(found: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    told = list(found)
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return "; ".join(told[:TOLD]) + more
