"""What the page knows of one study: all of it on the server, so that it survives a reload.

How far it has come: which run of how many, in which phase, and how long the rest may take.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.format import duration, moment
from reports.ledger.ledger import Record
from swarm.events import PhaseStarted, RunEnded, RunStarted, SampleEvent, WindowEvent
from swarm.plan.schedule import costs_of
from swarm.web.cells import cell_of, tab_row
from swarm.web.recent import RecentLatencies

KEPT_S = 900
"""Seconds that are kept: the last quarter of an hour of load."""
MOST_ROWS = 500
"""Of the table in Locust's page: as many as it shows of anything."""
RUNNING = "running"
MS = 1e6
DIGITS = 4
COLUMNS = (
    *("t_s", "cell", "repeat", "phase", "images_per_s", "failures_per_s"),
    *("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "in_flight", "users", "worker_cpu_pct"),
    *("loop_lag_ms", "server_queue_ms", "server_compute_ms", "executed_batch", "pending_requests"),
    *("gpu_util_pct", "gpu_memory_bytes", "gpu_power_w", "goodput_per_s", "run"),
)
"""Of each second: timeline.csv's names, but that `t_s` is Unix time, and `run` counts the runs from 1."""


class StudyState:
    """One study, from its header on; `count` numbers everything that a page has to be told."""

    def __init__(
        self, folder: Path, header: Record, count: Iterator[int], clock: Callable[[], float]
    ) -> None:
        self.folder, self.header, self.name = folder, header, folder.name
        self.status, self.reason, self.code = RUNNING, "", 0
        self.progress = Progress(header["plan"], clock())
        self.numbers: dict[tuple[str, int], int] = {}
        """Of the runs that have begun, by cell and repeat."""
        self.seconds: dict[tuple[int, str, int], tuple[int, list[Any]]] = {}
        """By second, cell and repeat, in the order of their numbers."""
        self.cells: list[tuple[int, dict[str, Any]]] = []
        self.tab: deque[dict[str, Any]] = deque(maxlen=MOST_ROWS)
        self.forgotten = False
        """Whether older seconds had to go."""
        self.fault = ""
        """Why it cannot be followed any more."""
        self._count, self._clock = count, clock
        self._recent = RecentLatencies()

    def on_run_started(self, run: RunStarted, **_: Any) -> None:
        """The next run."""
        self.progress.plan = list(run.plan)
        self.progress.begun(run.planned)
        self.numbers[run.cell, run.repeat] = self.progress.run

    def on_phase_started(self, phase: PhaseStarted, **_: Any) -> None:
        """A phase of it."""
        self.progress.phase = phase.phase

    def on_window(self, window: WindowEvent, **_: Any) -> None:
        """What clients did in a second; its percentiles are of as many seconds as they take."""
        self._show(self._recent.with_percentiles(window))

    def on_sample(self, sample: SampleEvent, **_: Any) -> None:
        """What was sampled in it stands in the same row."""
        self._show(sample)

    def _show(self, event: WindowEvent | SampleEvent) -> None:
        key = (event.second, event.cell, event.repeat)
        _, known = self.seconds.pop(key, (0, [None] * len(COLUMNS)))
        run = self.numbers[event.cell, event.repeat]
        own = (run if column == "run" else value_of(event, column) for column in COLUMNS)
        row = [old if value is None else value for value, old in zip(own, known, strict=True)]
        self.seconds[key] = (next(self._count), row)
        if len(self.seconds) > KEPT_S:
            del self.seconds[next(iter(self.seconds))]
            self.forgotten = True

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """Its numbers are those of the report."""
        self.progress.ended(run.status, self._clock())
        self._recent.forget(run.cell, run.repeat)
        if run.summary is not None:
            cell = {"run": self.numbers[run.cell, run.repeat], **cell_of(run.summary)}
            self.cells.append((next(self._count), cell))
            self.tab.append(tab_row(cell, len(self.cells)))

    def failed(self, fault: str) -> None:
        """It cannot be followed any more; its report will have everything."""
        self.fault = fault
        self.progress.over()

    def close(self, status: str, reason: str, code: int) -> None:
        """The study is over, and its report written."""
        self.status, self.reason, self.code = status, reason, code
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
            "started": moment(str(self.header.get("started_utc", ""))),
            "folder": str(self.folder),
            "status": self.status,
            "reason": self.reason,
            "code": self.code,
            "report": self.file("report.html") is not None,
            "csv": self.file("cells.csv") is not None,
        }

    @property
    def latest(self) -> int:
        """The number of what came last; 0 where nothing has."""
        seconds = next(reversed(self.seconds.values()), (0,))
        return max(seconds[0], self.cells[-1][0] if self.cells else 0)

    def news(self, since: int) -> Mapping[str, Any]:
        """What has come after number `since`: seconds, and finished cells."""
        newer = itertools.takewhile(lambda second: second[0] > since, reversed(self.seconds.values()))
        return {
            "seconds": [row for _, row in newer][::-1],
            "cells": [cell for number, cell in self.cells if number > since],
            "forgotten": self.forgotten,
            "fault": self.fault,
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
        self.run = self._done = 0
        self._entry: Record = {}

    def begun(self, entry: Record) -> None:
        """The next run."""
        self._entry, self.phase = entry, "preparing"
        self.run += 1

    def ended(self, status: str, now: float) -> None:
        """The run is over; one that the study's end cut off is not done."""
        if status != "aborted":
            self._done, self._ended = self.run, now
        self._entry, self.phase = {}, ""

    def over(self) -> None:
        """Nothing is under way, and nothing more will come."""
        self._entry, self.phase, self._over = {}, "", True

    def left(self) -> str:
        """How long the rest takes at the pace so far, in words; empty where that is not known."""
        to_do = sum(self._costs[self._done :])
        if self._over or not self._certain or self.pace_s is None or not to_do:
            return ""
        return duration(self.pace_s * to_do)

    @property
    def pace_s(self) -> float | None:
        """Seconds for each unit of `costs_of` so far; None where no run is done."""
        done = sum(self._costs[: self._done])
        return (self._ended - self._began) / done if done else None

    @property
    def _costs(self) -> list[int]:
        return costs_of(self.plan)

    def told(self) -> dict[str, Any]:
        """`runs` is None where nobody knows how many there will be; a `run` beyond `done` has not ended."""
        return {
            "done": self._done,
            "run": self.run,
            "runs": len(self.plan) if self._certain else None,
            "cell": self._entry.get("cell", ""),
            "repeat": self._entry.get("repeat"),
            "phase": self.phase,
            "left": self.left(),
        }


def value_of(event: WindowEvent | SampleEvent, column: str) -> Any:
    """What an event says in one of COLUMNS, to four digits; None where it says nothing of it."""
    if column == "t_s":
        return event.second
    if not column.endswith("_ms"):
        return short(getattr(event, column, None))
    value_ns = getattr(event, column.removesuffix("_ms") + "_ns", None)
    return None if value_ns is None else short(value_ns / MS)


def short(value: Any) -> Any:
    """A fraction to four digits, for it is sent every second; anything else as it is."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
