"""A study as a whole: its header, how it ended, one Summary for every planned run, and its seconds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reports.fold.run import summarise
from reports.fold.runs import planned_runs, whole_plan
from reports.fold.seconds import epoch_s
from reports.fold.timeline import Second, timeline
from reports.format import plural
from reports.ledger import FILE_NAME, Ledger, LedgerError, Record, read_ledger
from reports.summary import Summary
from reports.variants import variant_rank
from reports.way import Way

REQUIRED = ("study", "title", "size", "started_utc", "plan")


@dataclass(frozen=True)
class Study:
    """What a ledger comes to; `status` is complete, interrupted, failed, or unfinished without a footer.

    `colds` are the first requests of each batch shape, in the order they were made.
    """

    header: Record
    status: str
    reason: str
    cut_line: bool
    plan: tuple[Record, ...]
    colds: tuple[Record, ...]
    runs: tuple[Summary, ...]
    timeline: tuple[Second, ...]

    @property
    def started(self) -> tuple[Summary, ...]:
        """The runs that were begun, in run order."""
        return tuple(run for run in self.runs if run.started)

    @property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """What the header says of each endpoint: url, model, weights, embedded."""
        endpoints: Mapping[str, Mapping[str, Any]] = self.header.get("endpoints") or {}
        return endpoints

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The planned endpoints, in the header's order, which no seed has shuffled."""
        planned = {run.endpoint for run in self.runs}
        return (*(name for name in self.described if name in planned), *sorted(planned - set(self.described)))

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The planned ways to the model: by endpoint, then by what varies; no seed has shuffled them."""
        ranks: dict[Way, tuple[Any, ...]] = {run.way: variant_rank(run) for run in self.runs}
        place = self.endpoints.index
        return tuple(sorted(ranks, key=lambda way: (place(way.endpoint), ranks[way])))

    def named(self, way: Way) -> str:
        """A way as tables call it: the endpoint alone where the study has only one variant."""
        return str(way) if len({known.variant for known in self.ways}) > 1 else way.endpoint

    @property
    def links(self) -> Sequence[Record]:
        """What the header says of the emulated links."""
        links: Sequence[Record] = self.header.get("links") or ()
        return links


def load_study(directory: Path | str) -> Study:
    """Reads and folds the ledger of one result directory; LedgerError where that cannot be done."""
    path = Path(directory) / FILE_NAME
    ledger = read_ledger(path)
    if missing := [name for name in REQUIRED if name not in ledger.header]:
        raise LedgerError(f"{path}: the header lacks {', '.join(missing)}: run the study again.")
    try:
        return _folded(ledger)
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(
            f"{path}: a record is not what a ledger holds ({error!r}): it was edited or damaged."
        ) from error


def _folded(ledger: Ledger) -> Study:
    footers, runs = ledger.of_kind("footer"), planned_runs(ledger)
    footer = footers[-1] if footers else {}
    options = ledger.header.get("options") or {}
    return Study(
        header=ledger.header,
        status=footer.get("status", "unfinished"),
        reason=footer.get("reason", ""),
        cut_line=ledger.cut_line,
        plan=tuple(whole_plan(ledger)),
        colds=tuple(ledger.of_kind("cold")),
        runs=tuple(summarise(run, options, ledger.header.get("links") or ()) for run in runs),
        timeline=tuple(timeline(runs, int(epoch_s(ledger.header["started_utc"])))),
    )


def notices(study: Study) -> Iterator[str]:
    """What a reader must know of the study as a whole before any number."""
    reason = f": {study.reason}" if study.reason else ""
    if study.status == "unfinished":
        yield "The ledger has no footer: the study is still running, or it crashed."
    elif study.status != "complete":
        yield f"The study ended as {study.status}{reason}."
    if study.cut_line:
        yield "The ledger's last line is cut off; it was left out, and everything before it was read."
    if missing := len(study.runs) - len(study.started):
        yield f"Not started: {missing} of {plural(len(study.runs), 'planned run')}."
