"""The gate of a study: its thresholds, checked before any load, kept beside the ledger, and judged by."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from reports.format import plural
from reports.gates.require import GateError
from reports.gates.select import check_names, planned_cell
from reports.gates.thresholds import THRESHOLDS, VERDICTS, WARN, Gates, read_gates, studies_in
from reports.ledger.ledger import FILE_NAME
from swarm.errors import UsageError
from swarm.options.model import Options
from swarm.output import report_process
from swarm.output.run_fold import LiveSecond
from swarm.plan.cell import Cell, PlannedRun
from users.endpoint import Endpoint

if TYPE_CHECKING:
    # It takes SciPy, which only thresholds that may stop a study are worth.
    from swarm.output.early_stop import EarlyStop


class Gate:
    """What --gate asks of one study: nothing, without it. `baseline` is the place of one, if it has any."""

    _early_stop: EarlyStop | None = None
    _folder: Path

    def __init__(self, say: Callable[[str], None], gates: Gates | None = None, baseline: str = "") -> None:
        self._say, self._gates, self.baseline = say, gates, baseline

    @classmethod
    def of(cls, options: Options, say: Callable[[str], None]) -> Self:
        """Raises UsageError where the thresholds cannot be read, or the baseline is not there or not used."""
        if not options.gate:
            return cls(say)
        try:
            gates = read_gates(Path(options.gate))
        except GateError as error:
            raise UsageError(f"--gate {error}") from error
        own = os.path.abspath(gates.baseline) if gates.baseline else ""
        if gates.need_baseline:
            named = "--baseline" if options.baseline else f"--gate {options.gate}: [baseline] place"
            check_baseline(options.baseline or own, named)
            return cls(say, gates, options.baseline or own)
        if options.baseline:
            raise UsageError(
                f"--baseline {options.baseline}: no threshold in {options.gate} refers to a baseline;"
                f" leave it"
                " out, or add one such as latency_p95_ms / baseline <= 1"
            )
        return cls(say, gates)

    @property
    def given(self) -> bool:
        """Whether there is one."""
        return self._gates is not None

    def check(self, cells: Sequence[Cell], endpoints: Sequence[Endpoint], runs: int) -> None:
        """Raises UsageError where a threshold names what no cell and no endpoint of the study has.

        The study is to have so many runs at most.
        """
        if self._gates is None:
            return
        entries = [PlannedRun(cell, 1).to_record() for cell in cells]
        planned = {entry["cell"]: planned_cell(entry) for entry in entries}
        try:
            check_names(self._gates, planned, [endpoint.name for endpoint in endpoints])
        except GateError as error:
            raise UsageError(f"--gate {error}") from error
        if stopping := [one for one in self._gates.thresholds if one.abort_after_s is not None]:
            from swarm.output.early_stop import EarlyStop

            self._early_stop = EarlyStop(stopping, runs)

    def keep(self, folder: Path) -> None:
        """Keep the thresholds in the study's folder. Raises UsageError where it cannot be written."""
        if self._gates is None:
            return
        self._folder = folder
        try:
            (folder / THRESHOLDS).write_text(self._gates.written, encoding="utf-8", newline="")
        except OSError as error:
            text = f"--gate {self._gates.place}: cannot be copied to {folder} ({error.strerror}); fix that"
            raise UsageError(text) from error

    def on_second(self, second: LiveSecond) -> None:
        """A second of the run under way is whole."""
        if self._early_stop is None:
            return
        try:
            self._early_stop.on_second(second)
        except Exception as error:
            # The ledger goes on, and the study is judged at its end.
            self._early_stop = None
            self._say(
                f"inferswarm: thresholds can no longer stop this study ({type(error).__name__}: {error})"
            )

    def stopped(self) -> str:
        """Why a threshold stops the study, or nothing."""
        stop = self._early_stop.stop if self._early_stop is not None else None
        return f"gate: {stop.cell}: {stop.why}" if stop else ""

    def facts(self) -> dict[str, Any]:
        """What the ledger's footer has of it."""
        stop = self._early_stop.stop if self._early_stop is not None else None
        return {"gate": vars(stop)} if stop else {}

    def judge(self, tables: bool = False) -> tuple[str, int | None]:
        """Make verdicts and report: what is printed, and the exit code, None where it took too long."""
        return report_process.gate(self._folder, self._folder / THRESHOLDS, self.baseline, tables=tables)

    def wants(self, repeat: int, left: int) -> bool:
        """Whether the repeats left, from this number on, would decide a verdict, if like those so far."""
        with TemporaryDirectory() as place:
            text, _ = report_process.gate(self._folder, self._folder / THRESHOLDS, self.baseline, Path(place))
            try:
                verdicts = json.loads(Path(place, VERDICTS).read_text())["verdicts"]
            except (OSError, ValueError) as error:
                why = text.removeprefix("inferswarm: ") or error
                self._say(f"inferswarm: cannot tell whether repeats would decide: {why}")
                return False
        needed = [one["more_repeats"] for one in verdicts if one["severity"] != WARN and one["more_repeats"]]
        if not needed:
            return False
        still_open = f"{plural(len(needed), 'verdict')} {'is' if len(needed) == 1 else 'are'} open"
        if min(needed) > left:
            would = f"{plural(min(needed), 'more repeat')} would decide the first, and {left} may be added"
            self._say(f"no repeat is added: {still_open}; {would}")
            return False
        self._say(f"repeat {repeat}: {still_open}")
        return True


def check_baseline(place: str, named: str) -> None:
    """Raises UsageError where there is no baseline at this place, which is empty where none is named."""
    if not place:
        raise UsageError("--gate: a threshold refers to a baseline, and none is given; give --baseline")
    found = Path(place, FILE_NAME) if os.path.isdir(place) else Path(place)
    if not found.is_file() or not os.access(found, os.R_OK):
        raise UsageError(
            f"{named} {place}: is neither a directory with a {FILE_NAME} nor a readable file; give a"
            " study's results folder, or what `inferswarm baseline` made"
        )
    if not os.path.isdir(place):
        try:
            studies_in(found)
        except (GateError, OSError) as error:
            raise UsageError(f"{named} {place}: {error}".removesuffix(".")) from error
