"""Events: what they tell, to whom, in which order, and what becomes of listeners that are slow or raise."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
import pytest

from reports.gates.verdict import Verdict, kept_text
from reports.ledger.ledger import Record, tag_of
from swarm.events import HOOKS, StudyEnded, StudyEvent
from swarm.output import delivery
from tests.reports.lines import FIRST_SECOND, health_line, phase_line, sample_line, window
from tests.swarm.followed import END, START, Followed, Heard, hooks
from tests.swarm.web_stand import MS, a_book, tagged

BOOK = a_book(repeats=2)
TAG = tagged(BOOK)
START_UTC = "2026-11-21T11:00:00Z"


def a_second(at: int) -> list[Record]:
    """Ten successes and a failure on each of two workers, and a sample of two GPUs."""
    second, found = FIRST_SECOND + at, []
    for worker in ("w0", "w1"):
        made = window(TAG, worker, [40 * MS] * 10, 1)
        encode = {"encode": made["histograms"]["latency"]}
        found.append({**made, "second": second, "failures": {"timeout": 1}})
        found[-1]["histograms"] = made["histograms"] | (encode if worker == "w0" else {})
        lags_ns = [100_000] * 49 + [900_000]
        stated = {"users": 5, "loop_ran_ns": 300 * MS, "cpu_wait_ns": 20 * MS, "span_ns": 1_000 * MS}
        stated["cpu_pct"] = 30.0 if worker == "w0" else 50.0
        found.append(health_line(TAG, worker, second, lags_ns, **stated))
    gpus = [{"id": name, "util_pct": 50.0, "memory_bytes": 1 << 30, "power_w": 100.0} for name in ("a", "b")]
    return [
        *found,
        sample_line(
            TAG,
            second,
            gpus=gpus,
            pending_requests=2,
            missing=["metrics: refused"],
            ready_replicas=3,
            server={"requests": 7},
        ),
    ]


def a_run(seconds: int = 3) -> list[Record]:
    start = {**START, **TAG, "workers": ["w0", "w1"]}
    body = [record for at in range(seconds) for record in a_second(at)]
    return [start, phase_line(TAG, "measure", START_UTC), *body, {**END, **TAG}]


def ended(folder: Path) -> StudyEnded:
    return StudyEnded("step7", folder, "complete", "", 0)


def test_a_window_tells_of_all_workers_and_a_sample_of_all_gpus() -> None:
    heard = Heard()
    Followed(BOOK.header, heard).tell(*a_run(1))
    (told,) = heard.windows
    assert (told.second, told.t_s, told.utc, told.revision) == (FIRST_SECOND, 0, "2026-11-21T11:00:00Z", 0)
    run = ("onnx-grpc/b1/c2", 1, "measure")
    assert (told.cell, told.repeat, told.phase, told.endpoint) == (*run, "onnx-grpc")
    assert (told.ok, told.images, told.failures) == (20, 20, {"timeout": 2})
    assert (told.requests_per_s, told.failures_per_s, told.in_flight, told.users) == (20, 2, 8, 10)
    assert told.worker_cpu_pct == 50.0
    assert set(told.percentiles) == {"latency", "service_time", "send_delay", "encode"}
    assert told.percentiles["encode"].count == 10, "of one worker only"
    assert told.percentiles["latency"].p50_ns == told.latency_p50_ns == pytest.approx(40 * MS, rel=1e-3)
    assert (told.percentiles["latency"].p99_ns, told.latency_p99_ns) == (None, None)
    assert told.results["measure"].histogram("latency").total == 20
    (sample,) = heard.of("sample")
    assert (sample.second, sample.cell, sample.repeat, sample.phase) == (FIRST_SECOND, *run)
    assert (sample.gpu_util_pct, sample.gpu_memory_bytes, sample.gpu_power_w) == (50.0, 2 << 30, 200.0)
    assert ([gpu["id"] for gpu in sample.gpus], sample.pending_requests) == (["a", "b"], 2)
    assert (sample.missing, sample.replicas) == (("metrics: refused",), {"ready": 3})
    assert sample.server == {"requests": 7}
    (health,) = heard.of("health")
    assert (health.second, health.revision, health.cell, health.repeat, health.phase) == (
        FIRST_SECOND, 0, *run
    )  # fmt: skip
    assert {name: worker.cpu_pct for name, worker in health.workers.items()} == {"w0": 30.0, "w1": 50.0}
    worker = health.workers["w0"]
    assert worker.loop_lag_p99_ns == told.loop_lag_ns == pytest.approx(900_000, rel=1e-3)
    assert (worker.loop_cpu_pct, worker.cpu_wait_pct) == (30.0, 2.0)
    assert (worker.users, worker.in_flight) == (5, 4)


def test_a_window_adds_up_the_phases_of_its_second_and_has_each_of_them() -> None:
    heard = Heard()
    start, phase, first, *others, end = a_run(1)
    Followed(BOOK.header, heard).tell(start, phase, first | {"phase": "warm-up", "images": 30}, *others, end)
    (told,) = heard.windows
    assert (told.ok, told.images, told.failures) == (20, 40, {"timeout": 2})
    assert {name: found.ok for name, found in told.results.items()} == {"warm-up": 10, "measure": 10}
    assert told.percentiles["latency"].count == 20


def test_a_second_of_which_only_health_is_known_is_told() -> None:
    heard = Heard()
    start, phase, _, _, *others, end = a_run(1)
    Followed(BOOK.header, heard).tell(start, phase, *others, end)
    assert [(one.ok, one.failures) for one in heard.windows] == [(10, {"timeout": 1})]
    begun, alone = phase_line(TAG, "warm-up", START_UTC), health_line(TAG, "w0", phase="warm-up")
    Followed(BOOK.header, heard := Heard()).tell(start, begun, alone, end)
    assert heard.of("health")[0].phase == "warm-up"
    assert [name for name, _ in heard.told] == [
        "study_started",
        "run_started",
        "phase_started",
        "window",
        "health",
        "run_ended",
    ]
    assert (heard.windows[0].ok, heard.windows[0].percentiles) == (0, {})


def test_what_comes_too_late_and_what_still_waits_at_the_end_is_told() -> None:
    heard = Heard()
    study = Followed(BOOK.header, heard)
    start, *body, end = a_run(2)
    study.tell(start, *body)
    assert study.dispatcher.finish() == []
    study.tell()
    study.tell(start, *body)
    assert [one.ok for one in heard.windows] == [20, 20], "its end never came"
    study = Followed(BOOK.header, heard := Heard())
    study.tell(start, *body, end, {**START, **TAG}, {**body[1], "repeat": 2})
    assert study.dispatcher.finish() == ["1 record came too late for events."]


def test_a_second_study_has_runs_of_its_own(tmp_path: Path) -> None:
    heard = Heard()
    study = Followed(BOOK.header, heard)
    for _ in range(2):
        study.dispatcher.begin(BOOK.header, [heard])
        study.tell(*a_run(1), *({**record, "repeat": 2} for record in a_run(1)))
        study.dispatcher.finish()
        study.dispatcher.ended(ended(tmp_path))
    assert [[run.repeat for run in over.runs] for over in heard.of("study_ended")] == [[1, 2], [1, 2]]
    assert [started.planned["repeat"] for started in heard.of("run_started")] == [1, 2, 1, 2]


def test_one_listener_hears_a_run_in_order(tmp_path: Path) -> None:
    heard = Heard()
    study = Followed(BOOK.header, heard)
    study.tell(*a_run(2))
    assert study.dispatcher.finish() == []
    study.dispatcher.ended(ended(tmp_path))
    second = ["window", "health", "sample"]
    assert [name for name, _ in heard.told] == [
        *("study_started", "run_started", "phase_started"),
        *(*second, *second, "run_ended", "study_ended"),
    ]
    ((started,), (run,), (over,)) = map(heard.of, ("run_started", "run_ended", "study_ended"))
    assert (started.workers, started.hosts, started.planned["level"]) == (("w0", "w1"), 1, 2)
    assert len(started.plan) == 2
    assert (run.status, run.summary.counts.requests, run.summary.counts.failures) == ("done", 44, 4)
    assert (over.runs, over.folder, over.code) == ((run.summary,), tmp_path, 0)


def test_a_second_that_comes_again_has_a_higher_revision_and_no_second_sample() -> None:
    heard = Heard()
    start, phase, *body, end = a_run(3)
    Followed(BOOK.header, heard).tell(start, phase, *body[1:], body[0], end, step_s=1)
    assert [(one.second - FIRST_SECOND, one.revision, one.ok) for one in heard.windows] == [
        *((0, 0, 10), (1, 0, 20), (0, 1, 20), (2, 0, 20)),
    ]
    assert len(heard.of("sample")) == 3


def test_where_nobody_listens_no_event_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm.output.dispatch.window_event", lambda second: 1 / 0)
    study = Followed(BOOK.header)
    study.tell(*a_run())
    assert study.fold.summary(tag_of(TAG)) is not None
    assert (study.said, study.dispatcher.finish()) == ([], [])


class Page(Heard):
    """One of our own, which is told why no more events come."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def failed(self, fault: str) -> None:
        self.faults.append(fault)


def test_listeners_of_an_object_do_not_wait_for_those_of_another_and_one_that_raises_knows() -> None:
    class Raising(Page):
        def on_window(self, window: Any, **_: Any) -> None:
            gevent.sleep(0.02)
            raise ValueError(window.t_s)

    slow, quick = Raising(), Page()
    study = Followed(BOOK.header, slow, quick)
    study.give(*a_run(2))
    gevent.sleep(0.01)
    assert [name for name, _ in quick.told][-1] == "run_ended"
    study.tell()
    assert (slow.faults, quick.faults, len(slow.of("run_ended"))) == (["ValueError: 0"], [], 1)


def test_a_study_that_cannot_be_followed_is_not_asked_any_more() -> None:
    study = Followed(BOOK.header, heard := Page())
    start, phase, *body, end = a_run(4)
    study.tell(start, phase, *body[:-1], {**body[0], "histograms": {"latency": "broken"}}, end)
    assert study.said[0].startswith("inferswarm: no more events, live figures or early stops (")
    assert (study.fold.of(tag_of(TAG)), study.fold.summary(tag_of(TAG))) == (None, None)
    assert heard.of("run_ended") == []
    assert [study.said[0]] == [
        f"inferswarm: no more events, live figures or early stops ({fault})" for fault in heard.faults
    ]
    study.tell(*a_run(2))
    assert (len(study.said), study.dispatcher.finish()) == (1, [])


def listeners(to: dict[str, StudyEvent[Any]], *functions: Callable[..., Any]) -> None:
    """Of windows, as a locustfile adds them; each of a module of its own."""
    for number, function in enumerate(functions):
        function.__module__ = f"file{number}"
        to["window"].add_listener(function)


def undisturbed(seconds: int) -> tuple[Any, Any]:
    """All windows of a run and its Summary, where nobody is slow."""
    heard = Heard()
    Followed(BOOK.header, heard).tell(*a_run(seconds))
    return [(one.second, one.latency_p99_ns, one.ok) for one in heard.windows], heard.of("run_ended")


def test_a_listener_that_sleeps_takes_nothing_from_others_and_its_drops_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "PATIENCE_S", 0.3)
    to, heard, slow = hooks(), Heard(), []

    def sleep(window: Any, **_: Any) -> None:
        slow.append(window)
        gevent.sleep(10)

    listeners(to, sleep)
    study = Followed(BOOK.header, heard, to=to)
    before = time.monotonic()
    study.give(*a_run(5))
    assert time.monotonic() - before < 0.2, "nobody waits for it"
    gevent.sleep(0.01)
    told = [(one.second, one.latency_p99_ns, one.ok) for one in heard.windows]
    assert (told, heard.of("run_ended")) == undisturbed(5)
    assert study.dispatcher.finish() == ["file0 missed events: 4 of 5 events dropped."]
    assert study.said == ["inferswarm: dropping events that file0 listens to: it did not finish in time"]
    assert len(slow) == 1


def test_what_waits_is_bounded_and_what_comes_then_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "PATIENCE_S", 0.3)
    monkeypatch.setattr(delivery, "MOST_WAITING", 2)
    to, heard = hooks(), []

    def wait(window: Any, **_: Any) -> None:
        heard.append(window.t_s)
        gevent.sleep(0.05)

    listeners(to, wait)
    study = Followed(BOOK.header, to=to)
    study.give(*a_run(9))
    assert study.said == ["inferswarm: dropping events that file0 listens to: it is too slow"]
    assert study.dispatcher.finish() == ["file0 missed events: 7 of 9 events dropped."]
    assert heard == [0, 1]


@pytest.mark.parametrize(
    ("error", "words"), [(ValueError("no disk"), "ValueError: no disk"), (SystemExit(4), "SystemExit: 4")]
)
def test_a_listener_that_raises_is_told_of_and_hears_the_next(error: BaseException, words: str) -> None:
    to, heard, tried = hooks(), Heard(), []

    def fail(window: Any, **_: Any) -> None:
        tried.append(window)
        raise error

    listeners(to, fail)
    study = Followed(BOOK.header, heard, to=to)
    study.tell(*a_run(3))
    told = [(one.second, one.latency_p99_ns, one.ok) for one in heard.windows]
    assert (told, heard.of("run_ended")) == undisturbed(3)
    assert len(tried) == 3
    assert study.said == [f"inferswarm: file0, listening to events.window, raised {words}"]
    assert study.dispatcher.finish() == [
        f"file0 missed events: 3 of 3 events raised an error, the first: {words}."
    ]


def test_listeners_of_one_file_hear_in_order_and_are_called_by_its_name() -> None:
    to, told = hooks(), []

    def raise_once(run: Any, **_: Any) -> None:
        gevent.sleep(0.01)
        told.append("run")
        raise KeyError(run.cell)

    def count(window: Any, **_: Any) -> None:
        gevent.sleep(0.01)
        told.append("window")

    to["window"].add_listener(count)
    to["run_ended"].add_listener(raise_once)
    study = Followed(BOOK.header, to=to)
    study.tell(*a_run(2))
    assert told == ["window", "window", "run"]
    assert study.dispatcher.finish() == [
        "test_dispatch.py missed events: 1 of 3 events raised an error, the first: KeyError: "
        "'onnx-grpc/b1/c2'."
    ]


def test_a_listener_cannot_change_what_is_added_up() -> None:
    to, heard = hooks(), Heard()

    def spoil(window: Any, **_: Any) -> None:
        for found in window.results.values():
            found.failure_kinds["made up"] = 1_000
            found.histograms.clear()
            found.ok = 0

    listeners(to, spoil)
    start, phase, *body, end = a_run(3)
    Followed(BOOK.header, heard, to=to).tell(start, phase, *body[1:], body[0], end, step_s=1)
    (run,) = heard.of("run_ended")
    assert [run] == undisturbed(3)[1]
    assert [one.failures for one in heard.windows if one.revision] == [{"timeout": 2}]


def test_a_study_begins_with_what_its_ledger_says_of_it_and_its_links() -> None:
    links = [{"name": "wan", "rtt_ms": 20.0, "measured": {"rtt_ms": 20.4}}]
    Followed({**BOOK.header, "links": links, "fingerprint": {"cores": 2}}, heard := Heard()).tell()
    (begun,) = heard.of("study_started")
    assert (begun.name, begun.utc, begun.size) == ("step7", BOOK.header["started_utc"], BOOK.header["size"])
    assert (begun.links, begun.fingerprint, begun.hosts) == (tuple(links), {"cores": 2}, ())
    assert [tag_of(entry) for entry in begun.plan] == [tag_of(entry) for entry in BOOK.header["plan"]]


def test_a_phase_tells_of_what_was_set_and_found_before_it_and_the_end_of_operators(tmp_path: Path) -> None:
    start, first, *body, end = a_run(1)
    second = phase_line(TAG, "drain", START_UTC)
    cold = {"endpoint": "onnx-grpc", "batch": 1, "first_ns": 9 * MS, "second_ns": MS, "opening": True}
    serving = {"instances": 2, "batching_delay_ns": MS}
    told = {"kind": "serving", **TAG, **serving, "reloaded": ["onnx-http", "onnx-grpc"]}
    others = {**told, "repeat": 2, "instances": 4}
    operators = {"seconds": 1.5}
    study = Followed(BOOK.header, heard := Heard())
    study.tell({"kind": "operators", **operators}, start, told, others, {"kind": "cold", **cold}, first)
    study.tell(*body, second, end)
    study.dispatcher.finish()
    study.dispatcher.ended(ended(tmp_path))
    one, two = heard.of("phase_started")
    assert (one.phase, one.serving, one.reloaded) == ("measure", serving, ("onnx-http", "onnx-grpc"))
    assert one.first_calls == (cold,)
    assert (two.phase, two.serving, two.reloaded, two.first_calls) == ("drain", {}, (), ())
    assert heard.of("study_ended")[0].operators == operators


def test_what_one_of_ours_could_not_pass_on_is_told_once_and_counted() -> None:
    class Exporter(Heard):
        flag = "--to-nowhere"

        def missed(self) -> str:
            return f"--to-nowhere: {len(self.windows)} lost." if self.windows else ""

        def on_health(self, health: Any, **_: Any) -> None:
            raise OSError("no route")

    study = Followed(BOOK.header, Exporter())
    study.tell(*a_run(2))
    assert study.said == [
        "inferswarm: --to-nowhere: 1 lost.",
        "inferswarm: --to-nowhere, listening to events.health, raised OSError: no route",
    ]
    assert study.dispatcher.finish() == [
        "--to-nowhere missed events: 2 of 10 events raised an error, the first: OSError: no route. "
        "--to-nowhere: 2 lost."
    ]


def test_verdicts_are_told_before_the_end(tmp_path: Path) -> None:
    verdict = Verdict(
        threshold=1, line=1, title="t", require="latency_p50_ms <= 50", severity="fail", cell="c",
        outcome="pass", sentence="s", note="", column="latency_p50_ms", at_most=True, ratio=False,
        bound=50.0, tolerated=50.0, value=40.0, low=39.0, high=41.0, runs=3, more_repeats=None,
    )  # fmt: skip
    (tmp_path / "gates.json").write_text(kept_text([verdict]))
    heard = Heard()
    study = Followed(BOOK.header, heard)
    study.dispatcher.finish()
    study.dispatcher.ended(ended(tmp_path))
    assert [name for name, _ in heard.told] == ["study_started", "verdict", "study_ended"]
    assert heard.of("verdict") == [verdict]


def test_verdicts_that_cannot_be_read_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "gates.json").write_text("{}")
    heard = Heard()
    study = Followed(BOOK.header, heard)
    study.dispatcher.ended(ended(tmp_path))
    assert [name for name, _ in heard.told] == ["study_started", "study_ended"]
    assert study.said[0].startswith("inferswarm: the event with the verdicts failed: ")


def test_what_is_missed_after_the_last_record_is_told_on_the_console(tmp_path: Path) -> None:
    to = hooks()

    def fail(study: Any, **_: Any) -> None:
        raise OSError("read-only")

    to["study_ended"].add_listener(fail)
    study = Followed(BOOK.header, to=to)
    assert study.dispatcher.finish() == []
    study.dispatcher.ended(ended(tmp_path))
    assert study.said[-1] == (
        "inferswarm: test_dispatch.py missed events: 1 of 1 event raised an error, the "
        "first: OSError: read-only."
    )


def test_every_hook_has_its_name_in_the_module() -> None:
    from swarm import events

    assert {name: getattr(events, name) for name in HOOKS} == dict(HOOKS)
