"""What the page knows of one study: all of it on the server, so that it survives a reload.

How far it has come: which run of how many, in which phase, and how long the rest may take.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.caveat import Caveat
from reports.fold.run_records import planned_of
from reports.fold.timeline import TimelineSecond
from reports.ledger.ledger import Record
from reports.summary.summary import Summary
from swarm.plan.schedule import clock, cost_of
from swarm.web.cells import cell_of, tab_row
from swarm.web.seconds import KINDS, Seconds, entry_of, row_of, summary_of

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

    def _show(self, seconds: Iterator[TimelineSecond]) -> None:
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
            text = f"more than {MOST_RECORDS:,} records, too many to hold"
            doubt = Caveat("too-long", text, "Read its numbers in the report.")
            run = Summary(**planned_of(self._entry), status="done", caveats=(doubt,))
        else:
            run = summary_of(self.header, self._entry, records)
        cell = cell_of(run)
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


class Progress:
    """Counts the runs of a plan, which a search makes longer; times are seconds of one clock."""

    def __init__(self, plan: Sequence[Record], now: float) -> None:
        self.plan = list(plan)
        self.phase = ""
        self._certain = bool(plan)
        """Whether all runs are known beforehand."""
        self._over = False
        self._began, self._ended = now, now
        self._begun = self._done = 0
        self._entry: Record = {}

    def planned(self, entries: Iterable[Record]) -> None:
        """More runs, as a search finds that it needs them."""
        self.plan.extend(entries)

    def begun(self, entry: Record) -> None:
        """The next run."""
        self._entry, self.phase = entry, "preparing"
        self._begun += 1

    def ended(self, status: str, now: float) -> None:
        """The run is over; one that the study's end cut off is not done."""
        if status != "aborted":
            self._done, self._ended = self._begun, now
        self._entry, self.phase = {}, ""

    def over(self) -> None:
        """Nothing is under way, and nothing more will come."""
        self._entry, self.phase, self._over = {}, "", True

    def left(self) -> str:
        """How long the rest takes at the pace so far, in words; empty where that is not known."""
        costs = [cost_of(int(entry["batch"]), int(entry.get("requests") or 0)) for entry in self.plan]
        done, to_do = sum(costs[: self._done]), sum(costs[self._done :])
        if self._over or not self._certain or not done or not to_do:
            return ""
        return clock((self._ended - self._began) * to_do / done)

    def told(self) -> dict[str, Any]:
        """`runs` is None where nobody knows how many there will be; a `run` beyond `done` has not ended."""
        return {
            "done": self._done,
            "run": self._begun,
            "runs": len(self.plan) if self._certain else None,
            "cell": self._entry.get("cell", ""),
            "repeat": self._entry.get("repeat"),
            "phase": self.phase,
            "left": self.left(),
        }
