"""Events from what a study writes to its ledger: windows, samples, health, runs, verdicts, its end."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from reports.fold.health import HealthSums, share_pct
from reports.fold.timeline import ClientSecond, SampledSecond, TimelineSecond, percentiles_of
from reports.fold.windows import Results
from reports.format import plural
from reports.gates.require import GateError
from reports.gates.thresholds import VERDICTS
from reports.ledger.ledger import Record, tag_of
from reports.summary.summary import Summary
from swarm.distributed.recorder import TRACED_PER_S
from swarm.events import (
    HOOKS,
    DurationPercentiles,
    HealthEvent,
    PhaseStarted,
    RunEnded,
    RunStarted,
    SampleEvent,
    StudyEnded,
    StudyEvent,
    StudyStarted,
    TracedEvent,
    WindowEvent,
    WorkerSecond,
)
from swarm.output.delivery import Delivery
from swarm.output.run_fold import LiveSecond, RunFold

END = "_replicas"
"""End of the names of figures about replicas."""
BEFORE_PHASES = ("serving", "cold")
"""Kinds of records that tell what a run's first phase begins with."""
logger = logging.getLogger("inferswarm")


class Dispatcher:
    """Makes events from the records of studies' ledgers, one study after the other; `say` prints a line."""

    def __init__(
        self, fold: RunFold, say: Callable[[str], None], hooks: Mapping[str, StudyEvent[Any]] = HOOKS
    ) -> None:
        self._fold, self._say, self._hooks = fold, say, hooks
        self._delivery = Delivery(say, {})
        self._follows = False
        self._runs: list[Summary] = []
        self._operators: Record = {}
        self._before_phase: list[Record] = []
        """What was found since the last phase began."""
        self._untold = 0
        fold.listeners.append(self._on_second)

    def begin(self, header: Record, own: Sequence[object] = ()) -> None:
        """A study's records come next; `own` are internal listeners.

        Their methods are called as hooks are, `on_window` for `window`; `failed`, where there is one, is told
        why no more events come.
        """
        self._delivery, self._runs = Delivery(self._say, self._hooks, own), []
        self._follows, self._untold = True, 0
        self._operators, self._before_phase = {}, []
        with self._following():
            self._fold.follow(header)
            self._fire("study_started", study_started(header))

    def on_record(self, record: Record) -> None:
        """Any record of the ledger, as it is written; raises nothing."""
        if not self._follows:
            return
        with self._following():
            self._fold.on_record(record)
            self._tell(record)

    def on_traced(self, worker: str, found: Sequence[Record], untold: int) -> None:
        """Requests with a traceparent, and how many more there were than are told."""
        self._untold += untold
        for rows in found if self._follows else ():
            self._fire("traced", TracedEvent(**rows, worker=worker))

    @contextmanager
    def _following(self) -> Iterator[None]:
        """What goes wrong ends the following, and not the study."""
        try:
            yield
        except Exception as error:
            self._follows, fault = False, f"{type(error).__name__}: {error}"
            self._fold.forget()
            logger.exception("events cannot be produced")
            self._say(f"inferswarm: no more events, live figures or early stops ({fault})")
            self._delivery.fail(fault)

    def _tell(self, record: Record) -> None:
        tag = {name: record[name] for name in ("cell", "repeat") if name in record}
        if record["kind"] == "phase":
            self._fire("phase_started", self._phase_started(record, tag))
        elif record["kind"] in BEFORE_PHASES:
            self._before_phase.append(record)
        elif record["kind"] == "operators":
            self._operators = without(record, "kind")
        elif record["kind"] == "run" and record["event"] == "start":
            self._fire("run_started", self._started(record, tag))
        elif record["kind"] == "run":
            summary = self._fold.summary(tag_of(record))
            self._runs += [summary] if summary else []
            ended = RunEnded(**tag, status=record["status"], note=record["note"], summary=summary)
            self._fire("run_ended", ended)

    def _started(self, record: Record, tag: Mapping[str, Any]) -> RunStarted:
        plan = self._fold.plan
        planned = next(entry for entry in plan if tag_of(entry) == tag_of(record))
        about = {"utc": record["utc"], "workers": tuple(record["workers"]), "hosts": record["hosts"]}
        return RunStarted(**tag, **about, planned=planned, plan=tuple(plan))

    def _phase_started(self, record: Record, tag: Mapping[str, Any]) -> PhaseStarted:
        """With what was found before it, and not before an earlier one: of its own run, or of no one's."""
        waiting, of = self._before_phase, tag_of(tag)
        found = [one for one in waiting if tag_of({**tag, **one}) == of]
        self._before_phase = [one for one in waiting if tag_of({**tag, **one}) != of]
        serving: Record = next((one for one in found if one["kind"] == "serving"), {})
        return PhaseStarted(
            **tag,
            phase=record["phase"],
            utc=record["utc"],
            serving=without(serving, "kind", *tag, "reloaded"),
            reloaded=tuple(serving.get("reloaded") or ()),
            first_calls=tuple(without(one, "kind") for one in found if one["kind"] == "cold"),
        )

    def _on_second(self, second: LiveSecond) -> None:
        if not self._delivery.wanted:
            return
        row = second.row
        if second.here.phases:
            self._fire("window", window_event(second, row))
            self._fire("health", health_event(second, row))
        if second.sample is not None:
            self._fire("sample", sample_event(second.sample, row))

    def _fire(self, name: str, told: Any) -> None:
        self._delivery.fire(name, told)

    def finish(self) -> list[str]:
        """No more records come. What was missed by whom, in sentences, and what no event had."""
        if self._follows:
            with self._following():
                self._fold.finish()
        self._follows = False
        self._delivery.settle()
        late = self._fold.late if self._delivery.wanted else 0
        said = [f"{plural(late, 'record')} came too late for events."] if late else []
        if self._untold and self._delivery.hears("traced"):
            rest = f"with a traceparent, those beyond {TRACED_PER_S:,} a second, were not told of"
            said.append(f"{plural(self._untold, 'request')} {rest}.")
        return [*self._delivery.losses, *said]

    def ended(self, told: StudyEnded) -> None:
        """The study is judged and reported; `told` lacks its runs and operators."""
        missed = self._delivery.losses
        for verdict in self._verdicts(told.folder):
            self._fire("verdict", verdict)
        self._fire("study_ended", replace(told, runs=tuple(self._runs), operators=self._operators))
        self._delivery.settle()
        for loss in self._delivery.losses:
            if loss not in missed:
                self._say(f"inferswarm: {loss}")
        self._delivery.close()

    def _verdicts(self, folder: Path) -> Sequence[Any]:
        """Those that a gate has left in a study's folder."""
        if not (folder / VERDICTS).is_file():
            return ()
        # It takes SciPy, which only thresholds are worth.
        from reports.gates.verdict import kept_in

        try:
            return kept_in(folder)
        except GateError as error:
            self._say(f"inferswarm: the event with the verdicts failed: {error}")
            return ()


def study_started(header: Record) -> StudyStarted:
    """What the header of a study's ledger says; older ones, and such as tests make, do not say all of it."""
    by_name = ("options", "endpoints", "backends", "images", "fingerprint")
    about: dict[str, Any] = {name: header.get(name) or {} for name in by_name}
    about |= {name: tuple(header.get(name) or ()) for name in ("plan", "hosts", "links")}
    about |= {name: header.get(name, "") for name in ("title", "size")}
    return StudyStarted(name=header.get("study", ""), utc=header["started_utc"], **about)


def without(record: Record, *names: str) -> dict[str, Any]:
    """A record but for some of its fields."""
    return {name: value for name, value in record.items() if name not in names}


def window_event(second: LiveSecond, row: TimelineSecond) -> WindowEvent:
    """What clients did in a second, by its row and by what that was made of."""
    found = {phase: copied(one) for phase, one in second.here.results.items()}
    whole = Results()
    for one in found.values():
        whole.merge(one)
    return WindowEvent(
        **part_of(ClientSecond, row),
        second=second.at,
        revision=second.revision,
        ok=whole.ok,
        images=whole.images,
        failures=dict(whole.failure_kinds),
        percentiles={name: percentiles(whole, name) for name in whole.histograms},
        results=found,
    )


def percentiles(whole: Results, name: str) -> DurationPercentiles:
    """Those of one of its histograms."""
    p50_ns, p95_ns, p99_ns = percentiles_of([whole], name)
    return DurationPercentiles(count=whole.histogram(name).total, p50_ns=p50_ns, p95_ns=p95_ns, p99_ns=p99_ns)


def copied(found: Results) -> Results:
    """The same, apart from the one that is still added to."""
    kinds, histograms = found.failure_kinds.copy(), dict(found.histograms)
    return replace(found, failure_kinds=kinds, histograms=histograms)


def health_event(second: LiveSecond, row: TimelineSecond) -> HealthEvent:
    """How each worker fared in it."""
    told = second.here.health.workers
    return HealthEvent(
        second=second.at,
        cell=row.cell,
        repeat=row.repeat,
        phase=row.phase,
        revision=second.revision,
        workers={name: worker_second(sums) for name, sums in told.items()},
    )


def worker_second(sums: HealthSums) -> WorkerSecond:
    """One worker's figures, each by the fold's own formula."""
    return WorkerSecond(
        cpu_pct=sums.cpu.mean,
        loop_cpu_pct=share_pct(sums.ran),
        cpu_wait_pct=share_pct(sums.waited),
        loop_lag_p99_ns=sums.lag_ns(99.0),
        users=sums.users,
        in_flight=sums.in_flight,
    )


def sample_event(sample: Record, row: TimelineSecond) -> SampleEvent:
    """What was sampled in it, by its row, and as it was read."""
    return SampleEvent(
        **part_of(SampledSecond, row),
        second=sample["second"],
        gpus=tuple(sample.get("gpus") or ()),
        server=sample.get("server") or {},
        replicas={name.removesuffix(END): sample[name] for name in sample if name.endswith(END)},
        missing=tuple(sample.get("missing") or ()),
        server_cpu=sample.get("server_cpu") or {},
    )


def part_of(kind: type[ClientSecond | SampledSecond], row: TimelineSecond) -> dict[str, Any]:
    """The columns of a row that one kind of second has."""
    return {field.name: getattr(row, field.name) for field in fields(kind)}
