"""A study whose records are told to its listeners, as the master tells them."""

import locust  # noqa: F401  (first: it patches sockets and threads)

from collections.abc import Mapping
from typing import Any

from reports.ledger.ledger import Record
from swarm.events import HOOKS, StudyEvent, WindowEvent
from swarm.output.dispatch import Dispatcher
from swarm.output.run_fold import RunFold
from tests.swarm.fakes import FakeClock

START = {"kind": "run", "event": "start", "workers": ["w0"], "hosts": 1}
TIMED = {"utc": "2026-11-21T11:00:00Z"}
"""Not all lines made by hand have it."""
END = {"kind": "run", "event": "end", "status": "done", "note": ""}


def hooks() -> dict[str, StudyEvent[Any]]:
    """All of them, without any listeners."""
    return {name: StudyEvent(hook.argument) for name, hook in HOOKS.items()}


class Followed:
    """One study; `said` is what the person is told."""

    def __init__(
        self,
        header: Record,
        *own: object,
        clock: FakeClock | None = None,
        to: Mapping[str, StudyEvent[Any]] | None = None,
    ) -> None:
        self.clock, self.said = clock or FakeClock(), list[str]()
        self.fold = RunFold(self.clock)
        self.dispatcher = Dispatcher(self.fold, self.said.append, to or hooks())
        self.dispatcher.begin(header, own)

    def tell(self, *records: Record, step_s: float = 0.0) -> None:
        """Tell these, each so much later, until everybody has heard of them."""
        self.give(*records, step_s=step_s)
        self.dispatcher._delivery.settle()

    def give(self, *records: Record, step_s: float = 0.0) -> None:
        """The same, and wait for nobody."""
        for record in records:
            self.clock.now += step_s
            self.dispatcher.on_record({**TIMED, **record} if record["kind"] == "run" else record)


class Heard:
    """A listener that keeps all it is told, by event."""

    def __init__(self) -> None:
        self.windows: list[WindowEvent] = []
        self.told: list[tuple[str, Any]] = []

    def on_window(self, window: WindowEvent, **_: Any) -> None:
        self.windows.append(window)
        self.told.append(("window", window))

    def on_sample(self, sample: Any, **_: Any) -> None:
        self.told.append(("sample", sample))

    def on_health(self, health: Any, **_: Any) -> None:
        self.told.append(("health", health))

    def on_study_started(self, study: Any, **_: Any) -> None:
        self.told.append(("study_started", study))

    def on_run_started(self, run: Any, **_: Any) -> None:
        self.told.append(("run_started", run))

    def on_phase_started(self, phase: Any, **_: Any) -> None:
        self.told.append(("phase_started", phase))

    def on_run_ended(self, run: Any, **_: Any) -> None:
        self.told.append(("run_ended", run))

    def on_study_ended(self, study: Any, **_: Any) -> None:
        self.told.append(("study_ended", study))

    def on_verdict(self, verdict: Any, **_: Any) -> None:
        self.told.append(("verdict", verdict))

    def of(self, name: str) -> list[Any]:
        """What was told by one event."""
        return [told for event, told in self.told if event == name]
