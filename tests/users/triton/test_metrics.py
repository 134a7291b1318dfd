"""Triton's metrics page: what is read of it, over which connection, and at which address."""

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from swarm.errors import UsageError
from swarm.targets.endpoints import metrics_addresses
from tests.swarm.wsgi import serving
from users.backends.asking import metrics_reader
from users.endpoint import Endpoint
from users.errors import RequestError
from users.metrics import DCGM_FIELDS, gpu_records, gpus_of
from users.triton.counters import parse

REPLAYED = Path(__file__).parents[2] / "replayed"
PAGE = """\
nv_inference_count{model="clip",version="1"} 4000
# HELP nv_inference_pending_request_count Instantaneous number of pending requests awaiting execution
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="clip",version="1"} 7
nv_inference_pending_request_count{model="clip",version="2"} 2
nv_inference_pending_request_count{model="clip_trt",version="1"} 50
nv_gpu_utilization{gpu_uuid="GPU-a"} 0.07
nv_gpu_utilization{gpu_uuid="GPU-b"} NaN
nv_gpu_memory_total_bytes{gpu_uuid="GPU-a"} 85520809984
nv_gpu_memory_used_bytes{gpu_uuid="GPU-a"} 1.5e+09
nv_gpu_power_usage{gpu_uuid="GPU-a"} 71.245
nv_gpu_power_usage{gpu_uuid="GPU-b"} 70
nv_gpu_power_limit{gpu_uuid="GPU-a"} 700
"""


def test_pending_requests_of_one_model_and_every_gpu() -> None:
    assert parse(PAGE, ["clip"]) == {
        "pending_requests": 9,
        "gpus": [
            {
                "id": "GPU-a", "util_pct": 7.0, "memory_bytes": 1_500_000_000, "power_w": 71.245,
                "memory_total_bytes": 85_520_809_984, "power_limit_w": 700.0, "visible": True,
            },
            {"id": "GPU-b", "power_w": 70.0, "visible": True},
        ],
    }  # fmt: skip


def test_a_recorded_page_of_triton_tells_of_four_gpus() -> None:
    gpus = parse((REPLAYED / "triton.prom").read_text(), [])["gpus"]
    assert [gpu["id"][4:12] for gpu in gpus] == ["71ce41fd", "8674351b", "4bb61721", "7a9c9f44"]
    assert [gpu["energy_j"] for gpu in gpus] == [205_620.582, 203_679.455, 205_479.234, 199_292.13]


def test_a_recorded_page_of_dcgm_exporter_tells_of_a_gpu_and_not_of_its_instances() -> None:
    """4,845 MiB, and 319,159,391 mJ."""
    page = (REPLAYED / "dcgm.prom").read_text()
    uuid = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660"
    of_the_gpu = {
        "id": uuid, "sm_clock_mhz": 1215.0, "power_w": 409.692, "energy_j": 319_159.391,
        "memory_bytes": 5_080_350_720, "memory_free_bytes": 37_423_677_440, "mig": True,
    }  # fmt: skip
    assert parse(page, []) == {"gpus": [of_the_gpu]}
    part = f'DCGM_FI_DEV_FB_USED{{gpu="0",UUID="{uuid}",GPU_I_ID="13"}} 7\n'
    util = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="{uuid}"}} 99\n'
    assert parse(page + part + util, []) == {"gpus": [of_the_gpu | {"util_pct": 99.0}]}


def test_what_the_page_does_not_tell_is_left_out() -> None:
    assert set(parse(PAGE, ["resnet"])) == {"gpus"}
    assert parse("", ["clip"]) == {}
    assert gpu_records([("a", "power_w", math.nan), ("a", "util_pct", math.inf)]) == []
    page = 'nv_inference_pending_request_count{model="clip",version="1"} 0\n'
    assert parse(page, ["clip"]) == {"pending_requests": 0}


class Triton:
    """A metrics port that answers `PAGE` or a status, and remembers from which connections it was asked."""

    def __init__(self) -> None:
        self.status = "200 OK"
        self.peers: list[str] = []
        self.url = ""

    def answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        assert environ["PATH_INFO"] == "/metrics"
        self.peers.append(environ["REMOTE_PORT"])
        start(self.status, [("Content-Type", "text/plain")])
        return [PAGE.encode()]


def of(model: str) -> Endpoint:
    return Endpoint("onnx-http", "onnx", "http", "fp32", "nowhere:1", model)


@pytest.fixture
def triton() -> Iterator[Triton]:
    made = Triton()
    with serving(made.answer) as address:
        made.url = f"http://{address}/metrics"
        yield made


def test_readings_share_one_connection(triton: Triton) -> None:
    with metrics_reader(triton.url, of("clip_trt"), 5) as read:
        assert [read()["pending_requests"] for _ in range(3)] == [50, 50, 50]
    assert len(set(triton.peers)) == 1


def test_a_page_that_is_not_there(triton: Triton) -> None:
    triton.status = "404 Not Found"
    with metrics_reader(triton.url, of("clip"), 5) as read, pytest.raises(RequestError, match="HTTP 404"):
        read()


def test_addresses_from_the_ready_event_and_from_options() -> None:
    told = {"onnx": "http://127.0.0.1:8012/metrics", "openvino": "http://127.0.0.1:8022/metrics"}
    servers = {name: {"http": "127.0.0.1:8010", "metrics": url, "model": "m"} for name, url in told.items()}
    servers["pytorch"] = {"url": "http://127.0.0.1:8002"}
    assert metrics_addresses({}, {"endpoints": servers}) == told
    urls = {"onnx_http_url": "a:1", "onnx_metrics_url": "gpu:8012", "trt_metrics_url": "http://[::1]:9/m"}
    assert metrics_addresses(urls, {}) == {"onnx": "http://gpu:8012/metrics", "trt": "http://[::1]:9/m"}
    assert metrics_addresses({}, {}) == {}


@pytest.mark.parametrize(
    "url", ["gpu", "https://gpu", "grpc://gpu:8012", "gpu:x/metrics", "http://gpu:99999", "http:///m"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        metrics_addresses({"trt_metrics_url": url}, {})
    fix = "give host:port or http://host:port/metrics, https for TLS"
    assert str(caught.value) == f"--trt-metrics-url {url!r}: {fix}"


DCGM_PAGE = """\
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 99
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-a"} 0.213
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="GPU-a"} 36
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="0",UUID="GPU-a"} 700
DCGM_FI_DEV_PCIE_LINK_GEN{gpu="0",UUID="GPU-a"} 5
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-a"} 2150000000
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-b",GPU_I_ID="3"} 0.9
"""


def test_what_dcgm_alone_tells() -> None:
    """SM activity is a fraction on its page; that of an instance is not its GPU's."""
    assert gpus_of(DCGM_PAGE, DCGM_FIELDS)["gpus"] == [
        {
            "id": "GPU-a", "util_pct": 99.0, "sm_active_pct": 21.3, "throttle_reasons": 36,
            "power_limit_w": 700.0, "pcie_gen": 5, "pcie_rx_bytes_per_s": 2.15e9,
        },
        {"id": "GPU-b", "mig": True},
    ]  # fmt: skip
