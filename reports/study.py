"""A study as a whole: its header, how it ended, and one Summary for every planned run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.fold import fold
from reports.format import plural
from reports.ledger import FILE_NAME, Ledger, LedgerError, Record, read_ledger
from reports.summary import Summary

REQUIRED = ("study", "title", "size", "started_utc", "plan")


@dataclass(frozen=True)
class Study:
    """What a ledger comes to; `status` is complete, interrupted, failed, or unfinished without a footer."""

    header: Record
    status: str
    reason: str
    cut_line: bool
    runs: tuple[Summary, ...]

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


def load_study(directory: Path | str) -> Study:
    """Reads and folds the ledger of one result directory; LedgerError where that cannot be done."""
    path = Path(directory) / FILE_NAME
    ledger = read_ledger(path)
    if missing := [name for name in REQUIRED if name not in ledger.header]:
        raise LedgerError(f"{path}: the header lacks {', '.join(missing)}: run the study again.")
    footers = ledger.of_kind("footer")
    footer = footers[-1] if footers else {}
    status, reason = footer.get("status", "unfinished"), footer.get("reason", "")
    return Study(ledger.header, status, reason, ledger.cut_line, _folded(ledger, path))


def _folded(ledger: Ledger, path: Path) -> tuple[Summary, ...]:
    try:
        return fold(ledger)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error}") from error


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
