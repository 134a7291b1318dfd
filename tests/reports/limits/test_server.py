"""When the server is the limit: its instances, its batcher, its work, or that it was cold."""

from typing import Any

import pytest

from reports.backend_facts import BackendFacts
from reports.fold.windows import Offered
from reports.format import ms
from reports.limit import Limit
from reports.limits.rules import limit_of
from reports.machines.gpus import GpuUse
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, at_server
from tests.reports.limits.test_rules import a_run, code_of

ONE = {"serving": {"instances": 1}}
SERVICE = {"backend": "pytorch", "protocol": "http", "endpoint": "pytorch-http", "executed_batch": None}


def named(run: Summary, code: str) -> Limit:
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == code
    return limit


@pytest.mark.parametrize(("share", "code"), [(0.049, "offered-load"), (0.05, "server-cold")])
def test_first_executions_of_a_size(share: float, code: str) -> None:
    assert code_of(a_run(cold_share=share, cold_batches=(3, 5))) == code


def test_the_evidence_of_a_cold_server() -> None:
    limit = named(a_run(cold_share=0.445, cold_batches=(30,)), "server-cold")
    assert limit.evidence == "44.5 % of the server's execution time went into first executions of batch 30"


def test_sixteen_users_of_one_slow_instance() -> None:
    limit = named(at_server(600, 40, 642, **ONE, server_busy=0.99, level=16, in_flight=16.0), "server-queue")
    assert limit.evidence == (
        "requests waited 600 of 642 ms in the server's queue; work on a request took 40.0 ms; "
        "the model's one instance was executing 99.0 % of the time; executions had 1.00 images"
    )
    assert "more instances" in limit.advice


def test_one_user_of_one_slow_instance() -> None:
    limit = named(at_server(0.1, 120, 123, **ONE, server_busy=0.98, level=1, in_flight=1.0), "server-compute")
    assert limit.evidence == (
        "compute took 120 of 123 ms a request; requests waited 0.1 ms; "
        "the model's one instance was executing 98.0 % of the time"
    )


def test_one_user_of_four_fast_instances() -> None:
    run = at_server(0.1, 20, 21, server_busy=0.24, level=1, in_flight=1.0)
    assert "executing 24.0 % of the time" in named(run, "offered-load").evidence


@pytest.mark.parametrize(("busy", "code"), [(0.79, "offered-load"), (0.8, "server-compute")])
def test_how_busy_a_full_server_is(busy: float, code: str) -> None:
    assert code_of(at_server(0.1, 40, 50, **ONE, server_busy=busy, level=1, in_flight=1.0)) == code


@pytest.mark.parametrize(
    ("users", "queue", "code"),
    [
        (2, 40, "server-compute"),  # two take turns: as much waiting as work
        (3, 80, "server-queue"),
        (8, 41, "server-compute"),  # two batches of four take turns
        (16, 41, "server-queue"),  # two batches of eight: more than four wait
    ],
)
def test_between_waiting_and_work(users: int, queue: float, code: str) -> None:
    run = at_server(queue, 40, queue + 42, **ONE, server_busy=0.97, level=users, in_flight=float(users))
    assert code_of(run) == code


def test_a_long_batching_delay() -> None:
    serving = {"instances": 1, "batching_delay_ns": 200 * MS}
    run = at_server(199, 5, 206, serving=serving, server_busy=0.03, executed_batch=4.0)
    limit = named(run, "server-queue")
    assert limit.evidence == (
        "requests waited 199 of 206 ms in the server's queue; the batcher may hold a request back for 200 "
        "ms; executions had 4.00 images; the model's one instance was executing 3.00 % of the time"
    )
    assert limit.advice.startswith("Lower max_queue_delay_microseconds")


@pytest.mark.parametrize(
    ("delay_ms", "queue", "latency", "code"),
    [
        (10, 10, 16, "server-queue"),  # one user of the default delay: nobody joins
        (10, 10, 60, "offered-load"),  # the path takes longer
        (0, 10, 30, "offered-load"),
        (0, 20, 30, "inconclusive"),  # nor for an instance, which a quarter busy ones are not short of
    ],
)
def test_a_batching_delay_beside_other_parts(delay_ms: int, queue: float, latency: float, code: str) -> None:
    serving = {"instances": 1, "batching_delay_ns": delay_ms * MS}
    run = at_server(queue, 4, latency, serving=serving, server_busy=0.25)
    assert code_of(run) == code


def test_arrivals_that_happen_to_come_together_are_no_lack_of_instances() -> None:
    open_load = {
        "load": "open",
        "arrivals": "poisson",
        "level": 20.0,
        "offered": Offered(20.0, 1, 50.0),
        "due": 1_000,
    }
    assert code_of(at_server(70, 38, 110, **ONE, server_busy=0.76, **open_load)) == "offered-load"
    assert code_of(at_server(170, 38, 210, **ONE, server_busy=0.9, **open_load)) == "server-queue"


def test_dropped_arrivals_of_a_server_without_room() -> None:
    """Latency counts from the intended start: the wait for a user is no part of the server's share."""
    run = at_server(
        10_000, 40, 10_050, **ONE, server_busy=1.0, load="open", level=50.0, due=1_000, dropped=200,
        latency_mean_ns=30_000 * MS, send_delay_mean_ns=19_950 * MS, in_flight=256.0,
    )  # fmt: skip
    assert code_of(run) == "server-queue"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"each_gpu": (GpuUse(id="a", util_pct=96.0, power_share=0.93),)},
            "the GPU was 96.0 % busy, at 93.0 % of its power limit",
        ),
        ({"backend": "onnx", "host_cpu_pct": 97.0}, "the host's cores were 97.0 % busy"),
    ],
)
def test_a_device_without_room_gains_nothing_from_instances(changes: dict[str, Any], said: str) -> None:
    """The real model on two cores, sixteen users."""
    run = at_server(650, 90, 760, **ONE, server_busy=0.98, level=16, in_flight=16.0, **changes)
    assert said in named(run, "server-compute").evidence


@pytest.mark.parametrize(
    "changes",
    [
        {"facts": BackendFacts(computes=False), "host_cpu_pct": 97.0},  # sleeps
        {"backend": "onnx", "host_cpu_pct": 97.0, "local": False},  # elsewhere, however short the way is
        {"backend": "onnx", "host_cpu_pct": 97.0, "local": None},
        {"backend": "onnx", "host_cpu_pct": 89.0, "each_gpu": (GpuUse(id="a", util_pct=89.0),)},
    ],
)
def test_a_busy_host_that_is_not_the_servers(changes: dict[str, Any]) -> None:
    run = at_server(650, 90, 760, **ONE, server_busy=0.98, level=16, in_flight=16.0, **changes)
    assert code_of(run) == "server-queue"


def test_a_machine_without_room_though_instances_idle() -> None:
    run = at_server(1, 180, 190, backend="onnx", host_cpu_pct=99.0, server_busy=0.5)
    assert "the host's cores were 99.0 % busy" in named(run, "server-compute").evidence


@pytest.mark.parametrize(
    ("queue", "compute", "code"),
    [(0.1, 23.5, "offered-load"), (0.1, 24.5, "server-compute"), (26, 8, "server-queue")],
)
def test_by_its_share_of_the_time_where_instances_are_unknown(
    queue: float, compute: float, code: str
) -> None:
    serving = {"instances": None, "batching_delay_ns": None}
    run = at_server(queue, compute, 40, server_busy=None, serving=serving, **SERVICE)
    assert code_of(run) == code


@pytest.mark.parametrize("waited", [1, 800])
def test_slow_decoding_in_the_service(waited: float) -> None:
    """Its one computing thread is idle most of the time, and requests wait for those that decode."""
    parts = {"decode": 180 * MS, "preprocess": 15 * MS, "queue": waited * MS, "compute": 45 * MS}
    run = at_server(waited, 45, waited + 255, **SERVICE, **ONE, server_parts=parts, server_busy=0.3)
    limit = named(run, "server-preprocess")
    assert limit.evidence.startswith(f"decode took 180 of {ms((waited + 255) * MS)} ms a request")
    assert limit.advice.startswith("Make decode cheaper")


def test_of_parts_that_together_take_longer_than_the_model_the_larger_is_named() -> None:
    parts = {"decode": 4.9 * MS, "preprocess": 3.7 * MS, "queue": 0.3 * MS, "compute": 5.8 * MS}
    run = at_server(0.3, 5.8, 20, **SERVICE, **ONE, server_parts=parts, server_busy=0.3)
    limit = named(run, "server-preprocess")
    assert limit.evidence.startswith("decode took 4.9 of 20.0 ms a request")
    assert limit.advice.startswith("Make decode cheaper")


def test_a_gateway_that_waits_for_its_upstream_has_no_named_limit() -> None:
    """Whether the upstream's queue, its work or the way there takes the time is not told."""
    parts = {"decode": 1 * MS, "preprocess": 1 * MS, "queue": 1 * MS, "upstream": 30 * MS}
    run = at_server(1, 0, 35, **SERVICE, **ONE | {"server_busy": None}, server_parts=parts)
    assert named(run, "inconclusive").evidence.startswith(
        "the gateway waited 30.0 of 35.0 ms for its upstream"
    )


def test_a_gateway_that_decodes_for_longer_than_its_upstream_takes() -> None:
    parts = {"decode": 18 * MS, "preprocess": 4 * MS, "queue": 1 * MS, "upstream": 10 * MS}
    run = at_server(1, 0, 35, **SERVICE, **ONE | {"server_busy": None}, server_parts=parts)
    assert named(run, "server-preprocess").evidence.startswith("decode took 18.0 of 35.0 ms a request")
