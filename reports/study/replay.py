"""A run that replays a trace: how many requests were due in each second, and how many came back."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reports.caveats.client import due_by
from reports.fold.records import epoch_s
from reports.fold.run_records import RunRecords
from reports.fold.windows import Results


@dataclass(frozen=True)
class ReplayedSecond:
    """One second (or `width_s` of them) of the measure phase; `s` counts from the trace's beginning.

    Requests are those that ended in it.
    """

    s: float
    width_s: int
    asked_per_s: float
    answered_per_s: float
    failed_per_s: float


@dataclass(frozen=True)
class ReplayedRun:
    """One run; `asked` is how many requests the trace has.

    `due` of them at least were due before the phase ended: all, unless the run was stopped.
    """

    cell: str
    repeat: int
    asked: int
    due: int
    seconds: tuple[ReplayedSecond, ...]


def replay_of(run: RunRecords) -> ReplayedRun | None:
    """A run's replay; None where it replays nothing, or its measure phase never began."""
    planned, begins = run.planned, [line for line in run.of_kind("phase") if line["phase"] == "measure"]
    course = planned["asked"]
    if not course or not begins:
        return None
    began_s = begins[-1].get("start_utc_ns", 0) / 1e9 or epoch_s(begins[-1]["utc"])
    seconds = tuple(_seconds(run, began_s, course["width_s"], course["requests"]))
    phase_s = max((line.get("phase_ns") or 0) / 1e9 for line in run.drained) if run.drained else 0.0
    due, _ = due_by(course, phase_s)
    return ReplayedRun(planned["cell"], planned["repeat"], sum(course["requests"]), due, seconds)


def _seconds(
    run: RunRecords, began_s: float, asked_width_s: int, asked: list[int]
) -> Iterator[ReplayedSecond]:
    """From the trace's beginning to the last second with a request that was due, or that came back."""
    width_s = run.bins.width_s
    edges_s, due = asked_width_s * np.arange(len(asked) + 1), np.cumsum([0, *asked])
    ended = {at: here.results["measure"] for at, here in run.seconds.items() if "measure" in here.results}
    last_s = max([began_s + edges_s[-1], *(at + width_s for at in ended)])
    for at in range(run.bins.start(round(began_s)), round(last_s), width_s):
        s, here = at - began_s, ended.get(at, Results())
        before, after = np.interp((s, s + width_s), edges_s, due)
        yield ReplayedSecond(
            s=s,
            width_s=width_s,
            asked_per_s=float(after - before) / width_s,
            answered_per_s=here.ok / width_s,
            failed_per_s=here.failures / width_s,
        )
