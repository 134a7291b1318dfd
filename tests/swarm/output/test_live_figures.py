"""What is shown while a study runs is what its report says of the same seconds afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reports.fold.records import epoch_s
from reports.study.study import Study, load_study
from swarm.output.prometheus import Live
from swarm.web.cells import cell_of
from swarm.web.page import LivePage
from swarm.web.seconds import row_of
from tests.reports.fold.test_coarse import TAG, busy_run, written
from tests.swarm.fakes import FakeClock


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
    clock = FakeClock()
    page = LivePage(clock)
    page.begun(Path("results/one"), header)
    for record in records:
        clock.now += 0.2
        page.on_record(record)
    told = page.data(0)
    began = int(epoch_s(header["started_utc"]))
    expected = [row_of(replace(second, t_s=began + second.t_s)) for second in found.timeline]
    assert sorted(told["seconds"], key=lambda row: int(row[0])) == expected
    assert told["cells"] == [cell_of(run) for run in found.runs]
    assert (told["late"], told["fault"], len(expected)) == (0, "", 23)


def test_prometheus_has_the_reports_numbers(study: tuple[Study, list[dict[str, Any]]]) -> None:
    found, (_, *records) = study
    (run,) = found.runs
    live, registry = Live(FakeClock()), CollectorRegistry()
    registry.register(live)
    for record in records:
        if record["kind"] in ("window", "drained"):
            live.on_record(record)
    of = {"endpoint": run.endpoint, "cell": TAG["cell"], "phase": "measure"}

    def value(name: str, **more: str) -> float | None:
        return registry.get_sample_value(f"inferswarm_{name}", of | more)

    assert value("requests_total", outcome="ok") == run.succeeded
    assert value("requests_total", outcome="failed") == run.failures
    assert (value("images_total"), value("late_total")) == (run.images, run.late)
    assert value("latency_seconds_bucket", le="+Inf") == run.succeeded
    mean_s = (value("latency_seconds_sum") or 0) / (value("latency_seconds_count") or 1)
    assert mean_s == pytest.approx((run.latency_mean_ns or 0) / 1e9, rel=1e-9)
    assert run.latency_p50_ns is not None
    below = [
        sample.labels["le"]
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "inferswarm_latency_seconds_bucket"
        and sample.labels["phase"] == "measure"
        and sample.value >= run.succeeded / 2
    ]
    assert float(below[0]) >= run.latency_p50_ns / 1e9
