"""Where GPUs are read: this machine's for servers that run on it, and dcgm-exporter's page for all."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
import pytest

from swarm.errors import UsageError
from swarm.sampling import sampler as module
from swarm.sampling.sampler import GpuSources, open_sources, record
from swarm.targets.endpoints import check_metrics, dcgm_url
from tests.fake_nvml import FakeNvml
from tests.swarm.wsgi import serving
from users.endpoint import Endpoint

pytestmark = pytest.mark.system

DCGM = """\
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0"} 99
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-0"} 0.25
DCGM_FI_PROF_SM_ACTIVE{gpu="9",UUID="GPU-9"} 0.75
"""


@contextmanager
def page_of(text: str) -> Iterator[str]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        assert "HTTP_AUTHORIZATION" not in environ
        start("200 OK", [])
        return [text.encode()]

    with serving(answer) as address:
        yield f"http://{address}/metrics"


@pytest.fixture
def exporter() -> Iterator[str]:
    with page_of(DCGM) as url:
        yield url


def gpus_read(monkeypatch: pytest.MonkeyPatch, sources: GpuSources, nvml: Any) -> list[dict[str, Any]]:
    """What a second's record has of them, of a service at a loopback address that answers nothing."""
    monkeypatch.setattr(module, "find_nvml", lambda: nvml)
    endpoint = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "127.0.0.1:1")
    with open_sources(endpoint, {}, gpus=sources) as reads:
        answers = {name: read() for name, read in reads.items() if name in ("gpus", "dcgm")}
    gevent.get_hub().threadpool.join()
    found: list[dict[str, Any]] = record({}, answers).get("gpus", [])
    return found


def test_a_tunnel_does_not_lead_to_this_machines_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gpus_read(monkeypatch, GpuSources(here=["onnx-http"]), FakeNvml()) == []


def test_gpus_of_a_server_that_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(((), (os.getpid(),)))
    sources = GpuSources(here=["pytorch-http"], pids={"pytorch": os.getpid(), "onnx": os.getppid()})
    assert [gpu["serves"] for gpu in gpus_read(monkeypatch, sources, nvml)] == [False, True]
    assert (nvml.started, nvml.stopped) == (1, 1)


def test_dcgm_tells_more_of_the_gpus_that_are_known(monkeypatch: pytest.MonkeyPatch, exporter: str) -> None:
    sources = GpuSources(here=["pytorch-http"], dcgm=exporter)
    first, second = gpus_read(monkeypatch, sources, FakeNvml())
    assert (first["util_pct"], first["sm_active_pct"], first["power_w"]) == (55.0, 25.0, 250.5)
    assert "sm_active_pct" not in second


def test_dcgm_alone_tells_of_all_gpus_of_its_machine(monkeypatch: pytest.MonkeyPatch, exporter: str) -> None:
    found = gpus_read(monkeypatch, GpuSources(dcgm=exporter), None)
    assert [(gpu["id"], gpu["sm_active_pct"]) for gpu in found] == [("GPU-0", 25.0), ("GPU-9", 75.0)]


def test_its_address_is_completed_and_tried(exporter: str) -> None:
    assert dcgm_url("") == ""
    assert dcgm_url("gpu-host:9400") == "http://gpu-host:9400/metrics"
    check_metrics({}, dcgm=exporter)
    with pytest.raises(UsageError, match=r"^--dcgm-metrics-url http://127.0.0.1:1/metrics: cannot be read"):
        check_metrics({}, dcgm="127.0.0.1:1")
    with pytest.raises(UsageError, match=r"^--dcgm-metrics-url 'gpu': give host:port"):
        check_metrics({}, dcgm="gpu")


@pytest.mark.parametrize(
    "page", ["<html>Not a page of metrics</html>", "requests 7\n", "DCGM_FI_DEV_GPU_UTIL{ 9\n"]
)
def test_a_page_without_figures_of_gpus_is_refused(page: str) -> None:
    said = "has no figures of GPUs: give dcgm-exporter's page$"
    with page_of(page) as url, pytest.raises(UsageError, match=said):
        check_metrics({}, dcgm=url)
