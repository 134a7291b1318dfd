"""A real Prometheus scrapes real studies, and answers each query of the dashboard as their files do."""

import csv
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from swarm.exporters.latency_buckets import BOUNDS_S
from tests.locustfiles.console import ROOT, Console, study
from tests.processes import free_port, is_listening, wait_until
from tests.stand_ins import stand_in
from tests.swarm.wsgi import serving

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("promtool"), reason="needs Debian's package prometheus"),
]
FOLDER = ROOT / "examples" / "grafana"
VARIABLES = {"$endpoint": ".*", "$cell": ".*", "$__rate_interval": "5s"}
NATIVE_ERROR = 2 ** (1 / 16)
"""What a value may be off by in a native bucket."""
DCGM = """\
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 87
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-0"} 0.25
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-0"} 2048
DCGM_FI_DEV_FB_TOTAL{gpu="0",UUID="GPU-0"} 81920
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-0"} 251.5
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="0",UUID="GPU-0"} 700
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-0"} 1410
DCGM_FI_DEV_MAX_SM_CLOCK{gpu="0",UUID="GPU-0"} 1980
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-0"} 4
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="GPU-0"} 3e9
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-0"} 5e9
"""
"""dcgm-exporter's page of a GPU that is held down by its power limit; but for its energy, which grows."""


def dcgm(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    """The page now: 251.5 W, in mJ."""
    start("200 OK", [])
    energy = (
        f'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{gpu="0",UUID="GPU-0"}} {time.monotonic() * 251_500:.0f}\n'
    )
    return [(DCGM + energy).encode()]


SECONDS = {
    "gpu_power_watts": "gpu_power_w",
    "pending_requests": "pending_requests",
    "in_flight": "in_flight",
}
"""Metrics, by the column of timeline.csv that has the same of each second."""


@dataclass
class Prometheus:
    """One that runs, by its address."""

    address: str
    since: float

    def get(self, path: str, **asked: object) -> Any:
        """The data of an answer of its HTTP API, which must be a good one."""
        words = urllib.parse.urlencode(asked, doseq=True)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{words}", timeout=30) as reply:
            told = json.load(reply)
        assert told["status"] == "success"
        return told["data"]

    def over_time(self, query: str, **chosen: str) -> list[dict[str, Any]]:
        """The series of a query for a chart, from the begin until now; `chosen` are some of its variables."""
        for name, value in (VARIABLES | {f"${name}": value for name, value in chosen.items()}).items():
            query = query.replace(name, value)
        found: list[dict[str, Any]] = self.get(
            "query_range", query=query, start=self.since, end=time.time(), step=1
        )["result"]
        return found

    def last(self, query: str) -> float:
        """The latest value of the one series of a query, also where that has ended since."""
        (series,) = self.over_time(query)
        return float(series["values"][-1][1])


@contextmanager
def prometheus(config: Path, name: str, *options: str) -> Iterator[Prometheus]:
    """Debian's, on a port of its own, until the end."""
    port, folder = free_port(), config.parent
    address = f"127.0.0.1:{port}"
    words = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / name}",
        f"--web.listen-address={address}",
    ]
    with Console(["prometheus", *words, *options], folder, name=name) as console:
        wait_until(lambda: is_listening(port), 30, lambda: console.text)
        yield Prometheus(address, time.time())


def config_of(folder: Path, ports: tuple[int, int]) -> Path:
    """The example's configuration, for these ports, as promtool finds it right."""
    text, made = (FOLDER / "prometheus.yml").read_text(), folder / "prometheus.yml"
    subprocess.run(["promtool", "check", "config", str(FOLDER / "prometheus.yml")], check=True)
    targets = ", ".join(f'"127.0.0.1:{port}"' for port in ports)
    made.write_text(text.replace('"127.0.0.1:9646"', targets))
    return made


def rows(console: Console, name: str) -> list[dict[str, str]]:
    with (console.result() / name).open() as lines:
        return list(csv.DictReader(lines))


def studies(folder: Path, ports: tuple[int, int]) -> tuple[Console, Console]:
    """Two at once, until both are over: an emulated model beside a GPU, and replicas that come to fail."""
    places = [folder / "emulated", folder / "failing"]
    for place in places:
        place.mkdir()
    with (
        serving(dcgm) as page,
        stand_in("fake_kubernetes.py") as cluster,
        stand_in("fake_service.py", "--delay-ms", "20", "--status-after", "150") as service,
    ):
        emulated = (
            "--emulate",
            "50+10",
            "--dcgm-metrics-url",
            page,
            "--slo",
            "p99<=100",
            "--rates",
            "15,120",
        )
        size = (
            "--cells",
            "*-grpc/b1/r*",
            "--seconds",
            "8",
            "--warm-up",
            "2",
            "--prometheus-port",
            str(ports[0]),
        )
        first = study(places[0], *emulated, *size)
        failing = ("--pytorch-url", service, "--kube-url", f"http://{cluster}", "--cells", "*/b1/c1")
        second = study(
            places[1], *failing, "--seconds", "8", "--warm-up", "1", "--prometheus-port", str(ports[1])
        )
        wait_until(lambda: first.process.poll() is not None, 150, lambda: first.text)
        second.wait(60)
    return first, second


def test_a_real_prometheus_answers_every_query(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    config = config_of(tmp_path, ports)
    with (
        prometheus(config, "classic") as classic,
        prometheus(config, "native", "--enable-feature=native-histograms") as native,
    ):
        emulated, failing = studies(tmp_path, ports)
        board = json.loads((FOLDER / "inferswarm.json").read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
        for one in (classic, native):
            assert [query for query in queries if not one.over_time(query)] == [], (
                emulated.text,
                failing.text,
            )
        assert len(queries) == 37
        # The last run's last seconds may have come after the last scrape.
        first, _ = rows(emulated, "cells.csv")
        for one in (classic, native):
            the_figures_are_those_of_the_run(one, first)
        the_quantiles_are_those_of_the_run(classic, native, first)
        the_seconds_are_those_of_the_timeline(
            classic, f'instance="127.0.0.1:{ports[0]}"', rows(emulated, "timeline.csv")
        )
        of_cell = [query for query in queries if "$cell" in query]
        for query in of_cell:
            found = classic.over_time(query, endpoint=first["endpoint"], cell=first["cell"])
            assert {series["metric"]["cell"] for series in found} == {first["cell"]}
        known = classic.get("label/endpoint/values", **{"match[]": "inferswarm_requests_total"})
        assert known == ["emulated-grpc", "pytorch-http"]


def the_figures_are_those_of_the_run(told: Prometheus, row: dict[str, str]) -> None:
    """Requests and images are exactly those of cells.csv."""
    of = f'cell="{row["cell"]}",phase="measure"'

    def total(name: str, more: str = "") -> float:
        return told.last(f"inferswarm_{name}_total{{{of}{more}}}")

    assert total("requests", ',outcome="ok"') + total("requests", ',outcome="failed"') == int(row["requests"])
    assert total("images") == int(row["images"]) > 100


def the_quantiles_are_those_of_the_run(classic: Prometheus, native: Prometheus, row: dict[str, str]) -> None:
    """Each lies in the bucket of the exact one: between two bounds, and within 4.4 %."""
    of = f'cell="{row["cell"]}",phase="measure"'
    for share, column in ((0.5, "latency_p50_ms"), (0.9, "latency_p90_ms"), (0.95, "latency_p95_ms")):
        exact_s = float(row[column]) / 1e3
        found_s = classic.last(f"histogram_quantile({share}, inferswarm_latency_seconds_bucket{{{of}}})")
        assert bisect_left(BOUNDS_S, found_s) == bisect_left(BOUNDS_S, exact_s)
        found_s = native.last(f"histogram_quantile({share}, inferswarm_latency_seconds{{{of}}})")
        assert exact_s / NATIVE_ERROR * 0.999 <= found_s <= exact_s * NATIVE_ERROR * 1.001
    assert native.over_time("inferswarm_latency_seconds_bucket") == []


def the_seconds_are_those_of_the_timeline(told: Prometheus, of: str, seconds: list[dict[str, str]]) -> None:
    """What Prometheus has read of a second, of which it may miss one, is in a row of timeline.csv."""
    for name, column in SECONDS.items():
        (series,) = told.over_time(f"inferswarm_{name}{{{of}}}")
        found = {float(value) for _, value in series["values"]}
        assert found <= {float(row[column]) for row in seconds if row[column]}
        assert len(found) > 3 or name.startswith("gpu")
