"""What gates judge: the runs of one study or of several, and which of them a verdict may rest on."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from reports.caveat import Trait, coded
from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side, conditions, side_of_study
from reports.fold.records import ratio
from reports.format import plural
from reports.gates.require import (
    FAILURE_RATIO,
    GOODPUT_PER_S,
    GOODPUT_SHARE,
    PERCENTILES,
    UNEXPLAINED_SHARE,
    GateError,
    JudgedBy,
    results_in_a_run,
)
from reports.gates.select import Planned, planned_cell
from reports.gates.thresholds import FAIL, Threshold
from reports.ledger.ledger import Record, Tag
from reports.stats.repeats import grouped
from reports.study.study import Study
from reports.summary.blocks import RunBlocks

OF_GOODPUT = frozenset({GOODPUT_SHARE, GOODPUT_PER_S})
OF_FAILURES = frozenset({FAILURE_RATIO, "failures", "abandoned"}) | OF_GOODPUT
"""They are known of a run of which no request succeeded, too."""
OF_THE_RATE = frozenset({"requests_per_s", "images_per_s", "offered_per_s"})
"""With open-loop load they are what was asked for, however slow the server is."""


@dataclass(frozen=True)
class Taken:
    """A run that was begun: of which study, counted from 0, and its row of cells.csv."""

    study: int
    row: Row

    @property
    def repeat(self) -> int:
        """Counted from 1 within its study."""
        return int(self.row.numbers.get("repeat", 1))

    @property
    def tag(self) -> Tag:
        """As its ledger names it."""
        return self.row.cell, self.repeat

    def value(self, column: str) -> float | None:
        """What it has in a column that can be gated; None where that is unknown."""
        numbers = self.row.numbers
        if column == FAILURE_RATIO:
            return ratio(numbers.get("failures"), numbers.get("requests"))
        if column == UNEXPLAINED_SHARE:
            return ratio(numbers.get("unexplained_ms"), numbers.get("latency_mean_ms"))
        return numbers.get(column)

    def known(self, column: str) -> float:
        """The same of a run that has it; ValueError where it does not."""
        value = self.value(column)
        if value is None:
            raise ValueError(f"{column} of {self.row.cell} is not known")
        return value


@dataclass(frozen=True, kw_only=True)
class GateSource:
    """Sides of equal right, one for each study; `cells` is what was planned of each cell of them.

    `endpoints` are all that a study could have named. `blocks_of` has the seconds of some runs, which only a
    ledger has. `stopped` is what a footer says of a threshold that stopped its study.
    """

    sides: tuple[Side, ...]
    cells: Mapping[str, Planned]
    endpoints: tuple[str, ...] = ()
    blocks_of: Callable[[Sequence[Taken]], Sequence[RunBlocks]] | None = None
    stopped: tuple[Record, ...] = ()

    @cached_property
    def runs(self) -> Mapping[str, Sequence[Taken]]:
        """The runs that were begun, by cell, in order."""
        every = (Taken(number, row) for number, side in enumerate(self.sides) for row in side.rows)
        return grouped(every, lambda run: run.row.cell)

    @cached_property
    def conditions(self) -> Mapping[str, tuple[Mapping[str, str], ...]]:
        """By endpoint, what each study states that must be as another's."""
        endpoints = dict.fromkeys(row.endpoint for side in self.sides for row in side.rows)
        return {one: tuple(conditions(side, one) for side in self.sides) for one in endpoints}

    @property
    def unended(self) -> tuple[str, ...]:
        """How each study ended that is not complete, as a sentence would have it."""
        return tuple(
            f"{side.name} {'failed' if side.status == 'failed' else f'is {side.status}'}"
            for side in self.sides
            if side.status != "complete"
        )


def source_of(studies: Sequence[tuple[Path, Study]]) -> GateSource:
    """Of studies with the directories they are in; GateError where one is there twice, SideError."""
    sides = tuple(side_of_study(study, path) for path, study in studies)
    check_once(sides)
    whole = {entry["cell"]: planned_cell(entry, study.header) for _, study in studies for entry in study.plan}
    return GateSource(
        sides=sides,
        cells=whole,
        endpoints=tuple(dict.fromkeys(name for _, study in studies for name in study.described)),
        blocks_of=_blocks_in([study for _, study in studies]),
        stopped=tuple(gate for _, study in studies if (gate := study.footer.get("gate"))),
    )


def check_once(sides: Iterable[Side]) -> None:
    """GateError where two are the same study, told by its name and by when it began."""
    found: dict[tuple[str, str], Side] = {}
    for side in sides:
        first = found.setdefault((side.header["study"], side.header["started_utc"]), side)
        if first is not side:
            same = f"is named twice, or holds the same study as {first.place}"
            raise GateError(f"{side.place}: {same}: name each once.")


def _blocks_in(studies: Sequence[Study]) -> Callable[[Sequence[Taken]], list[RunBlocks]]:
    """The seconds of some runs."""
    return lambda runs: [studies[run.study].blocks[run.tag] for run in runs]


@dataclass(frozen=True)
class Counted:
    """The runs that count, and why others do not: empty where all do."""

    runs: tuple[Taken, ...]
    said: str = ""

    @property
    def results(self) -> float:
        """Requests of all runs that came back right."""
        return sum(run.row.succeeded or 0 for run in self.runs)


@dataclass(frozen=True)
class Counting:
    """Which runs count: by their caveats, and by thresholds on what verdicts rest on that are no warnings.

    Such are those on the generator's health. `unlike` says of cells why no run of theirs counts: those of
    several studies may not be of one thing.
    """

    thresholds: Sequence[Threshold] = ()
    unlike: Mapping[str, str] = field(default_factory=dict)

    def counted(self, runs: Sequence[Taken], planned: Planned, column: str, pooled: bool = False) -> Counted:
        """The runs of a cell that count for a threshold on a column.

        Where the requests of all runs are `pooled`, a single run may have few of them, and those that failed
        or were never sent are judged with the others.
        """
        if runs and (why := self.unlike.get(runs[0].row.cell)):
            return Counted((), why)
        kept, reasons = [], Counter[str]()
        for run in runs:
            found = next(self._against(run, planned, column, pooled), "")
            if found:
                reasons[found] += 1
            else:
                kept.append(run)
        said = (f"{plural(count, 'run')} left out ({reason})" for reason, count in reasons.items())
        return Counted(tuple(kept), "; ".join(said))

    def _against(self, run: Taken, planned: Planned, column: str, pooled: bool) -> Iterator[str]:
        if planned["load"] == "open" and column in OF_THE_RATE:
            yield f"{column} of open-loop load is what was asked: bound a latency"
        excused, had = coded(Trait.IS_BOUNDED), run.row.succeeded
        if pooled or column in OF_FAILURES:
            excused, had = excused | {"no-data"}, run.row.numbers.get("requests")
        if column in OF_GOODPUT or (pooled and column in PERCENTILES):
            # none of them was answered within any bound
            excused |= {"dropped-arrivals"}
        yield from (caveat.code for caveat in run.row.disqualified if caveat.code not in excused)
        least = 1 if pooled else results_in_a_run(column)
        if (had or 0) < least:
            few = f"fewer than {least:,} results, measure longer: --iterations or --seconds"
            yield "no results" if least == 1 else few
        if run.value(column) is None and (column in OF_GOODPUT or not pooled):
            yield f"{column} is not known{': it takes --slo' if column in OF_GOODPUT else ''}"
        for threshold in self.thresholds:
            own = threshold.require.kind is JudgedBy.EVIDENCE and threshold.severity == FAIL
            if own and threshold.require.column != column and threshold.chooses(planned):
                if (value := run.value(threshold.require.column)) is None:
                    yield f"{threshold.require.column} is not known"
                elif not threshold.keeps(value):
                    yield f"{threshold.require.text} is not kept"
