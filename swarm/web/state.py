"""What the page knows of one study: all of it on the server, so that it survives a reload."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.fold.timeline import Second
from reports.ledger.ledger import Record
from swarm.web.cells import TOO_LONG, cell_of, tab_row, untold
from swarm.web.folding import entry_of, summary_of
from swarm.web.progress import Progress
from swarm.web.seconds import KINDS, Seconds, row_of

KEPT_S = 900
"""Seconds that are kept: the last quarter of an hour of load."""
MOST_RECORDS = 10_000
"""Of one run: 12 minutes of four workers, folded in a second. For longer ones there is the report."""
MOST_ROWS = 500
"""Of the table in Locust's page: as many as it shows of anything."""
RUNNING = "running"

Numbered = tuple[int, Any]


class StudyState:
    """One study, from its header on; `count` numbers everything that a page has to be told."""

    def __init__(
        self, folder: Path, header: Record, count: Iterator[int], clock: Callable[[], float]
    ) -> None:
        self.folder, self.header, self.name = folder, header, folder.name
        self.status, self.reason, self.code = RUNNING, "", 0
        self.progress = Progress(header["plan"], clock())
        self.seconds: deque[Numbered] = deque(maxlen=KEPT_S)
        self.cells: list[Numbered] = []
        self.tab: deque[dict[str, Any]] = deque(maxlen=MOST_ROWS)
        self.forgotten = False
        """Whether older seconds had to go."""
        self._count, self._clock = count, clock
        self._entry: Record = {}
        self._records: list[Record] | None = []
        """Of the running cell, for its fold; None once they are too many, which are let go."""
        self._running: Seconds | None = None
        self._late = 0

    def on_record(self, record: Record) -> None:
        """Any record of the ledger, as it is written."""
        if record["kind"] == "plan":
            self.progress.planned(record["runs"])
        elif record["kind"] == "run" and record["event"] == "start":
            self._begin(record)
        elif self._is_running(record):
            self._follow(record)

    def _begin(self, record: Record) -> None:
        self._entry = entry_of(self.progress.plan, record)
        self._records, self._running = [record], Seconds(self._entry)
        self.progress.begun(self._entry)

    def _is_running(self, record: Record) -> bool:
        known = (self._entry.get("cell"), self._entry.get("repeat"))
        return self._running is not None and (record.get("cell"), record.get("repeat")) == known

    def _follow(self, record: Record) -> None:
        assert self._running is not None
        if self._records is not None:
            self._records.append(record)
            if len(self._records) > MOST_RECORDS:
                self._records = None
        if record["kind"] == "phase":
            self.progress.phase = record["phase"]
        if record["kind"] in KINDS:
            self._show(self._running.add(record, self._clock()))
        elif record["kind"] == "run":
            self._show(self._running.rest())
            self._end(record["status"])

    def _show(self, seconds: Iterator[Second]) -> None:
        """One that comes a second time takes the place of the first."""
        for second in seconds:
            row = row_of(second)
            for one in [one for one in self.seconds if one[1][0] == row[0] and one[1][1:3] == row[1:3]]:
                self.seconds.remove(one)
            self.forgotten |= len(self.seconds) == KEPT_S
            self.seconds.append((next(self._count), row))

    def _end(self, status: str) -> None:
        """No load is under way now: there is time for a fold."""
        assert self._running is not None
        running, records = self._running, self._records
        self._records, self._running = [], None
        self.progress.ended(status, self._clock())
        self._late += running.late
        if records is None:
            cell = untold(self._entry, TOO_LONG, f"more than {MOST_RECORDS:,} records, too many to hold")
        else:
            cell = cell_of(summary_of(self.header, self._entry, records))
        self.cells.append((next(self._count), cell))
        self.tab.append(tab_row(cell, len(self.cells)))

    def close(self, status: str, reason: str, code: int) -> None:
        """The study is over, and its report written."""
        self.status, self.reason, self.code = status, reason, code
        self._records, self._running = [], None
        self.progress.over()

    def supersede(self) -> None:
        """Another study has begun: of this one only its files are asked for from now on."""
        self.seconds.clear()
        self.cells.clear()
        self.tab.clear()
        self.progress.plan.clear()

    def file(self, name: str) -> Path | None:
        """One of the files that the study has left; None until then."""
        path = self.folder / name
        return path if self.status != RUNNING and path.is_file() else None

    def about(self) -> dict[str, Any]:
        """What stands at the head of the page, and among earlier studies."""
        return {
            "id": self.name,
            "title": str(self.header.get("title", "")),
            "size": str(self.header.get("size", "")),
            "started_utc": str(self.header.get("started_utc", "")),
            "folder": str(self.folder),
            "status": self.status,
            "reason": self.reason,
            "code": self.code,
            "report": self.file("report.html") is not None,
            "csv": self.file("cells.csv") is not None,
        }

    def news(self, since: int) -> Mapping[str, Any]:
        """What has come after number `since`: seconds, and finished cells."""
        newer = itertools.takewhile(lambda second: second[0] > since, reversed(self.seconds))
        return {
            "seconds": [row for _, row in newer][::-1],
            "cells": [cell for number, cell in self.cells if number > since],
            "forgotten": self.forgotten,
            "late": self._late + (self._running.late if self._running else 0),
            "progress": self.progress.told(),
        }
