"""What is shown while a study runs is what its report says of the same seconds afterwards."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reports.cells_csv.columns import TIMELINE
from reports.fold.records import epoch_s
from reports.fold.timeline import TimelineSecond
from reports.study.study import Study, load_study
from swarm.events import WindowEvent
from swarm.exporters.live import Live
from swarm.output import run_fold
from swarm.web.cells import cell_of
from swarm.web.page import LivePage
from swarm.web.state import COLUMNS, short
from tests.reports.fold.test_coarse import TAG, busy_run, written
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import Followed, Heard


@pytest.fixture(params=[1, 2, 3])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Study, list[dict[str, Any]]]:
    """A run of three phases as its report has it, and its records; some of its two workers' come late."""
    chance = Random(request.param)
    lines = busy_run(chance)
    workers = [line for line in lines if line["kind"] in ("window", "health")]
    for late in chance.sample(workers, 12):
        lines.insert(len(lines) - 9, lines.pop(lines.index(late)))
    ledger = written(tmp_path, lines)
    return load_study(tmp_path), [json.loads(line) for line in ledger.read_text().splitlines()]


def test_the_live_page_has_the_reports_numbers(study: tuple[Study, list[dict[str, Any]]]) -> None:
    found, (header, *records) = study
    page = LivePage()
    study = Followed(header, page.begun(Path("results/one"), header))
    study.tell(*records, step_s=0.2)
    told = page.data(0)
    began = int(epoch_s(header["started_utc"]))
    expected = [[began + second.t_s, *shown(second), 1] for second in found.timeline]
    rows = sorted(told["seconds"], key=lambda row: int(row[0]))
    assert [alone(row) for row in rows] == [alone(row) for row in expected]
    assert told["cells"] == [{"run": 1, **cell_of(run)} for run in found.runs]
    assert (study.dispatcher.finish(), told["fault"], len(expected)) == ([], "", 23)


def alone(row: list[object]) -> list[object]:
    """A row without percentiles: the page's are of several seconds where one has too few results."""
    return [value for name, value in zip(COLUMNS, row, strict=True) if not name.startswith("latency_")]


def shown(second: TimelineSecond) -> list[object]:
    """A row of timeline.csv as the page has it, without its time and the number of its run."""
    assert (COLUMNS[0], COLUMNS[-1]) == ("t_s", "run")
    return [short(TIMELINE[column](second)) for column in COLUMNS[1:-1]]


def test_events_have_the_reports_numbers(study: tuple[Study, list[dict[str, Any]]]) -> None:
    found, (header, *records) = study
    heard = Heard()
    Followed(header, heard).tell(*records, step_s=0.2)
    windows = {window.t_s: window for window in heard.windows}
    samples = {sample.t_s: sample for sample in heard.of("sample")}
    for row in found.timeline:
        for event in (windows.get(row.t_s), samples.get(row.t_s)):
            part = {name: value for name, value in vars(row).items() if event and hasattr(event, name)}
            assert {name: getattr(event, name) for name in part} == part
    assert {row.t_s for row in found.timeline if row.requests_per_s is not None} == set(windows)
    (ended,), (run,) = heard.of("run_ended"), found.runs
    assert ended.summary == run
    assert sum(window.results["measure"].ok for window in latest(heard) if "measure" in window.results) == (
        run.succeeded
    )


def test_of_a_long_run_whose_seconds_are_let_go_the_sums_are_the_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_fold, "KEPT", 3)
    ledger, heard = written(tmp_path, busy_run(Random(4))), Heard()
    header, *records = map(json.loads, ledger.read_text().splitlines())
    Followed(header, heard).tell(*records, step_s=0.2)
    (run,), (ended,) = load_study(tmp_path).runs, heard.of("run_ended")
    assert ended.summary == run
    assert len(heard.windows) == 23


def latest(heard: Heard) -> list[WindowEvent]:
    """The last word on each second."""
    return list({window.second: window for window in heard.windows}.values())


def test_prometheus_has_the_reports_numbers(study: tuple[Study, list[dict[str, Any]]]) -> None:
    found, (header, *records) = study
    (run,) = found.runs
    live, registry = Live(FakeClock()), CollectorRegistry()
    registry.register(live)
    # The readings of its GPU have no id, without which an exporter has no name for it.
    Followed(header, live).tell(*({**record, "gpus": []} for record in records), step_s=0.2)
    of = {"endpoint": run.endpoint, "cell": TAG["cell"], "phase": "measure"}

    def value(name: str, **more: str) -> float | None:
        return registry.get_sample_value(f"inferswarm_{name}", of | more)

    assert value("requests_total", outcome="ok") == run.succeeded
    assert value("requests_total", outcome="failed") == run.counts.failures
    assert (value("images_total"), value("late_total")) == (run.counts.images, run.sent.late)
    assert value("latency_seconds_bucket", le="+Inf") == run.succeeded
    mean_s = (value("latency_seconds_sum") or 0) / (value("latency_seconds_count") or 1)
    assert mean_s == pytest.approx((run.latency.mean_ns or 0) / 1e9, rel=1e-9)
    assert run.latency.p50_ns is not None
    below = [
        sample.labels["le"]
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "inferswarm_latency_seconds_bucket"
        and sample.labels["phase"] == "measure"
        and sample.value >= run.succeeded / 2
    ]
    assert float(below[0]) >= run.latency.p50_ns / 1e9
