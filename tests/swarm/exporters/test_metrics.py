"""The description of all metrics: what is told is what it says, on the page of exporters as well."""

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from swarm.events import PhaseStarted, RunEnded
from swarm.exporters.live import Live
from swarm.exporters.metrics import METRICS, OF_GPUS, OF_SERVING
from tests.swarm.exporters.test_prometheus import CELL, Stand, health, sample, stand, window, worker

__all__ = ("stand",)


def whole(live: Live) -> None:
    """Tells it all that a study may tell."""
    live.on_window(window([5_000_000] * 10, good=3, late=1, failures={"reset": 1}))
    live.on_health(health(w0=worker(4e6, users=3)))
    gpu = {about.field: 3 for about in OF_GPUS} | {"id": "GPU-a", "throttle_reasons": 4}
    host = {"host_cpu_pct": 3.0, "tx_bytes_per_s": 3.0, "rx_bytes_per_s": 4.0}
    server = {"requests": 3, "queue_ns": 4}
    live.on_sample(sample(gpus=(gpu,), pending_requests=1, replicas={"ready": 1}, server=server, **host))
    about: Any = {"cell": CELL, "repeat": 1, "phase": "measure", "utc": ""}
    serving = {one.field: 3 for one in OF_SERVING}
    live.on_phase_started(PhaseStarted(**about, serving=serving))
    run: Any = SimpleNamespace(sent=SimpleNamespace(dropped=1), endpoint="onnx-grpc")
    live.on_run_ended(RunEnded(cell=CELL, repeat=1, status="done", note="", summary=run))


def test_what_is_told_is_what_is_described(stand: Stand) -> None:
    whole(stand.live)
    told = {
        (f"{family.name}_total" if family.type == "counter" else family.name): family
        for family in stand.live.collect()
    }
    for metric in METRICS:
        family = told.pop(metric.name)
        assert (family.type, family.documentation) == (metric.kind, metric.about)
        assert all(set(one.labels) - {"le"} == set(metric.labels) for one in family.samples)
    assert told == {}


def test_the_page_of_exporters_has_the_description() -> None:
    page = (Path(__file__).parents[3] / "docs" / "exporters.md").read_text()
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.about} |"
        for one in METRICS
    ]
    assert re.findall(r"(?m)^\| `inferswarm_\w+` \|.*$", page) == rows, "\n".join(rows)


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs Debian's package prometheus")
def test_prometheus_own_linter_finds_nothing(stand: Stand) -> None:
    whole(stand.live)
    linted = subprocess.run(
        ["promtool", "check", "metrics"], input=stand.page(), capture_output=True, text=True
    )
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")
