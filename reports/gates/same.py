"""Whether studies met the same conditions, so that the server alone can tell them apart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from reports.gates.source import Source, Taken

NEARLY = {"workers": 0.0, "hosts": 0.0, "request_bytes": 0.02}
"""By what part columns may differ: a request's size shows another image size or encoding, and JPEGs vary."""
TOLD = 3


@dataclass(frozen=True)
class _Met:
    """What some studies state of themselves, and the runs of a cell that they made."""

    facts: Sequence[Mapping[str, str]]
    runs: Sequence[Taken]

    @classmethod
    def of(cls, source: Source, runs: Sequence[Taken]) -> "_Met":
        """Of the studies that made these runs of one cell."""
        facts = source.conditions[runs[0].row.endpoint]
        return cls([facts[number] for number in dict.fromkeys(run.study for run in runs)], runs)

    def said(self, what: str) -> frozenset[str]:
        """All that is stated of one name."""
        return frozenset(facts.get(what, "not stated") for facts in self.facts)

    def largest(self, column: str) -> float:
        """Of a column over all runs, 0 where it is not known."""
        return max(run.row.numbers.get(column, 0.0) for run in self.runs)


def what_differs(now: Source, then: Source, cell: str, may_differ: Sequence[str]) -> str:
    """What does not match of a cell that both have, in words; empty where all does that must."""
    met = [_Met.of(source, source.runs[cell]) for source in (now, then)]
    found = _differences(met, may_differ)
    return _told(f"{what} ({ours} here, {theirs} in the baseline)" for what, (ours, theirs) in found)


def what_varies(source: Source, cell: str, may_differ: Sequence[str]) -> str:
    """What the studies of one side that have a cell do not have in common, in words."""
    by_study: dict[int, list[Taken]] = {}
    for run in source.runs[cell]:
        by_study.setdefault(run.study, []).append(run)
    found = _differences([_Met.of(source, runs) for runs in by_study.values()], may_differ)
    return _told(f"{what} ({' or '.join(sorted(set(each)))})" for what, each in found)


def unlike(source: Source, may_differ: Sequence[str]) -> Mapping[str, str]:
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
