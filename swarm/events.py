"""Events of a study, for locustfiles: `from swarm import events`. docs/events.md has every field.

    @events.window.add_listener
    def on_window(window, **_):
        print(window.cell, window.latency_p99_ns)

They are hooks like Locust's own, and fire on the master, or in the only process if there is none;
Locust's `request` fires on the workers. Each gives its listeners one keyword argument, which they must
not change: others get the same. Listeners of one module, or of one object, hear all of theirs in order, in a
greenlet of their own: one that is slow or raises only affects itself.
"""

from __future__ import annotations

from locust.event import EventHook

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reports.fold.timeline import ClientSecond, SampledSecond
from reports.fold.windows import Results
from reports.ledger.ledger import Record
from reports.summary.summary import Summary

if TYPE_CHECKING:
    # It takes SciPy, which only thresholds are worth.
    from reports.gates.verdict import Verdict

Told = TypeVar("Told")


class StudyEvent(EventHook, Generic[Told]):
    """A hook; `argument` is the name under which its listeners are given what it tells."""

    def __init__(self, argument: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.argument = argument

    @property
    def listeners(self) -> tuple[Callable[..., Any], ...]:
        """Those that are there now."""
        return tuple(self._handlers)


@dataclass(frozen=True, kw_only=True)
class DurationPercentiles:
    """Of one kind of duration in one second, in nanoseconds; `count` says of how many."""

    count: int
    p50_ns: float | None
    p95_ns: float | None
    p99_ns: float | None


@dataclass(frozen=True, kw_only=True)
class WindowEvent(ClientSecond):
    """One second of one run, all workers merged; `second` is Unix time.

    It comes once every worker has told of a later second. Where one tells of it later still it comes again,
    whole, with a higher `revision`. `ok` requests succeeded, with so many `images`; the others are counted in
    `failures` by kind. `percentiles` are of successes by what they are of: latency, service_time, send_delay
    and the client's phases; `failed` and `timeout` are of failures. `results` has counts and histograms by
    the phase of the run in which requests ended.
    """

    second: int
    revision: int
    ok: int
    images: int
    failures: Mapping[str, int]
    percentiles: Mapping[str, DurationPercentiles]
    results: Mapping[str, Results]


@dataclass(frozen=True, kw_only=True)
class SampleEvent(SampledSecond):
    """What the master sampled in one second of a run; `second` is Unix time.

    `gpus` are the readings of each GPU, `server` its counters since it started, `server_cpu` how long its
    machine's processors were wanted and stolen, `replicas` what Kubernetes says of them, `missing` what could
    not be read, and why.
    """

    second: int
    gpus: tuple[Mapping[str, Any], ...]
    server: Mapping[str, Any]
    replicas: Mapping[str, int]
    missing: tuple[str, ...]
    server_cpu: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WorkerSecond:
    """One worker's state in a second; None if it did not report."""

    cpu_pct: float | None
    loop_cpu_pct: float | None
    cpu_wait_pct: float | None
    loop_lag_p99_ns: float | None
    users: int | None
    in_flight: int | None


@dataclass(frozen=True, kw_only=True)
class HealthEvent:
    """The workers' own health in one second of a run, by their names; `revision` as of WindowEvent."""

    second: int
    cell: str
    repeat: int
    phase: str
    revision: int
    workers: Mapping[str, WorkerSecond]


@dataclass(frozen=True, kw_only=True)
class StudyStarted:
    """A study begins, as the header of its ledger says: what is planned, and what it runs on.

    `links` are the emulated ones, each with what was asked of it and what was measured; `hosts` those of the
    clients. `endpoints` and `backends` are by name.
    """

    name: str
    title: str
    size: str
    utc: str
    plan: tuple[Record, ...]
    options: Mapping[str, Any]
    endpoints: Mapping[str, Mapping[str, Any]]
    backends: Mapping[str, Mapping[str, Any]]
    images: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    hosts: tuple[Mapping[str, Any], ...]
    links: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """A run begins: `plan` is all that is planned until now, `planned` its own entry."""

    cell: str
    repeat: int
    utc: str
    workers: tuple[str, ...]
    hosts: int
    planned: Record
    plan: tuple[Record, ...]


@dataclass(frozen=True, kw_only=True)
class PhaseStarted:
    """A phase of a run begins: warm-up, measure or drain.

    With a run's first phase comes what was found before it: `serving` is what the server says of the model as
    it is set for the run, `reloaded` the endpoints whose models were loaded again for that, and `first_calls`
    how long the first requests of each batch size took.
    """

    cell: str
    repeat: int
    phase: str
    utc: str
    serving: Mapping[str, Any] = field(default_factory=dict)
    reloaded: tuple[str, ...] = ()
    first_calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TracedEvent:
    """Requests of a worker that carried a `traceparent`, in the phase in which they began, once they ended.

    `columns` are those of results.parquet, by name, of equal lengths.
    """

    cell: str
    repeat: int
    phase: str
    worker: str
    columns: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class RunEnded:
    """A run is over, and all its windows are told. `summary` is the report's, with its limit and caveats.

    `status` is done, failed or aborted; `summary` is None where the report will refuse the run's records.
    """

    cell: str
    repeat: int
    status: str
    note: str
    summary: Summary | None


@dataclass(frozen=True)
class StudyEnded:
    """A study is over, and its report written to `folder`.

    `status` is complete, interrupted or failed, `code` what the process exits with. `runs` are the Summaries
    of those that were begun, in order, each with its limit and caveats. `operators` are the times of the
    model's operators, where they were profiled.
    """

    name: str
    folder: Path
    status: str
    reason: str
    code: int
    runs: tuple[Summary, ...] = ()
    operators: Mapping[str, Any] = field(default_factory=dict)


window = StudyEvent[WindowEvent]("window")
sample = StudyEvent[SampleEvent]("sample")
health = StudyEvent[HealthEvent]("health")
study_started = StudyEvent[StudyStarted]("study")
run_started = StudyEvent[RunStarted]("run")
phase_started = StudyEvent[PhaseStarted]("phase")
traced = StudyEvent[TracedEvent]("traced")
run_ended = StudyEvent[RunEnded]("run")
verdict: StudyEvent[Verdict] = StudyEvent("verdict")
study_ended = StudyEvent[StudyEnded]("study")

HOOKS = {name: hook for name, hook in [*vars().items()] if isinstance(hook, StudyEvent)}
"""All of them, by name."""
