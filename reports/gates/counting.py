"""Which runs of a cell a verdict may rest on, and why the others do not count."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reports.format import plural
from reports.gates.columns import OF_FAILURES, OF_THE_RATE, Kind, results_in_a_run
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
    """Decides by caveats, and by the thresholds on what verdicts rest on, such as the generator's health.

    `unlike` says of cells why no run of theirs counts: those of several studies may not be of one thing.
    """

    evidence: tuple[Threshold, ...] = ()
    unlike: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, thresholds: Iterable[Threshold], unlike: Mapping[str, str]) -> "Counting":
        """By those of some thresholds that bound evidence, and are no mere warnings."""
        bounds = (one for one in thresholds if one.require.kind is Kind.EVIDENCE and one.severity == FAIL)
        return cls(tuple(bounds), unlike)

    def counted(self, runs: Sequence[Taken], planned: Planned, column: str, pooled: bool = False) -> Counted:
        """The runs of a cell that count for a threshold on a column.

        Where the requests of all runs are `pooled`, a single run may have few of them.
        """
        least = 1 if pooled else results_in_a_run(column)
        if runs and (why := self.unlike.get(runs[0].row.cell)):
            return Counted((), (why,))
        kept, reasons = [], Counter[str]()
        for run in runs:
            found = next(self._against(run, planned, column, least), "")
            if found:
                reasons[found] += 1
            else:
                kept.append(run)
        said = [f"{plural(count, 'run')} left out ({reason})" for reason, count in reasons.items()]
        return Counted(tuple(kept), tuple(said))

    def _against(self, run: Taken, planned: Planned, column: str, least: int) -> Iterator[str]:
        if planned["load"] == "open" and column in OF_THE_RATE:
            yield f"{column} of open load is what was asked: bound a latency"
        excused, had = _JUDGED_ITSELF, run.row.succeeded
        if column in OF_FAILURES:
            excused, had = _OF_NO_SUCCESS, run.row.numbers.get("requests")
        yield from (doubt.code for doubt in run.row.disqualified if doubt.code not in excused)
        if (had or 0) < least:
            few = f"fewer than {least:,} results, measure longer: --iterations or --seconds"
            yield "no results" if least == 1 else few
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
