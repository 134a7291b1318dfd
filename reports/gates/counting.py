"""Which runs of a cell a verdict may rest on, and why the others do not count."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reports.format import plural
from reports.gates.columns import FAILURE_RATIO, Kind, results_in_a_run
from reports.gates.planned import Planned
from reports.gates.source import Taken
from reports.gates.thresholds import FAIL, Threshold

_JUDGED_ITSELF = frozenset({"failures"})
"""Every study has a bound on its failures, so they do not disqualify a run once more."""
_OF_NO_SUCCESS = _JUDGED_ITSELF | {"no-data"}


@dataclass(frozen=True)
class Counted:
    """The runs that count, and in a sentence each why others do not."""

    runs: tuple[Taken, ...]
    left_out: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Why not all count; empty where they do."""
        return "; ".join(self.left_out)


@dataclass(frozen=True)
class Counting:
    """Decides by caveats, and by the thresholds on what verdicts rest on, such as the generator's health."""

    evidence: tuple[Threshold, ...] = ()

    @classmethod
    def of(cls, thresholds: Iterable[Threshold]) -> "Counting":
        """By those of some thresholds that bound evidence, and are no mere warnings."""
        return cls(
            tuple(one for one in thresholds if one.require.kind is Kind.EVIDENCE and one.severity == FAIL)
        )

    def counted(self, runs: Sequence[Taken], planned: Planned, column: str) -> Counted:
        """The runs of a cell that count for a threshold on a column."""
        kept, reasons = [], Counter[str]()
        for run in runs:
            found = next(self._against(run, planned, column), "")
            if found:
                reasons[found] += 1
            else:
                kept.append(run)
        said = [f"{plural(count, 'run')} left out ({reason})" for reason, count in reasons.items()]
        return Counted(tuple(kept), tuple(said))

    def _against(self, run: Taken, planned: Planned, column: str) -> Iterator[str]:
        excused = _OF_NO_SUCCESS if column == FAILURE_RATIO else _JUDGED_ITSELF
        yield from (doubt.code for doubt in run.row.disqualified if doubt.code not in excused)
        least, had = results_in_a_run(column), run.row.succeeded
        if column == FAILURE_RATIO:
            had = run.row.numbers.get("requests")
        if (had or 0) < least:
            yield "no results" if least == 1 else f"fewer than {least:,} results"
        if run.value(column) is None:
            yield f"{column} is not known"
        for threshold in self.evidence:
            if threshold.require.column != column and threshold.chooses(planned):
                yield from _unkept(threshold, run)


def _unkept(threshold: Threshold, run: Taken) -> Iterator[str]:
    value = run.value(threshold.require.column)
    if value is None:
        yield f"{threshold.require.column} is not known"
    elif not threshold.keeps(value):
        yield f"{threshold.require.text} is not kept"
