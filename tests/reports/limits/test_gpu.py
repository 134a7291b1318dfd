"""Whether a GPU is full: what its utilisation alone does not show, and which of several GPUs is meant."""

from dataclasses import replace
from typing import Any

import pytest

from reports.limits.rules import limit_of
from reports.limits.shares import full_gpu
from reports.machines.gpus import GpuUse
from reports.summary.summary import Summary
from tests.reports.limit_runs import at_server

BUSY = GpuUse(id="GPU-71ce41fd-3ac0", serves=True, util_pct=97.0)
IDLE = replace(BUSY, id="GPU-8674351b-11aa", util_pct=3.0)
MORE_INSTANCES = "Try more instances"
FASTER_DEVICE = "Use a faster device"
ONE_OF_32 = {"instances": 1, "max_batch": 32}


def queueing(*gpus: GpuUse, batch: float = 1.0, **changes: Any) -> Summary:
    """Sixteen users of one instance that is always executing: each waits for fifteen others.

    By mean value analysis of one server of 40 ms: 16 x 40 = 640 ms, of which 600 are waiting.
    """
    changes = {"serving": ONE_OF_32, "local": False} | changes
    return at_server(
        600,
        40,
        642,
        server_busy=0.99,
        level=16,
        in_flight=16.0,
        executed_batch=batch,
        each_gpu=gpus,
        **changes,
    )


def verdict(run: Summary) -> tuple[str, str, str]:
    limit = limit_of(run)
    assert limit is not None
    return limit.code, limit.evidence, limit.advice


@pytest.mark.parametrize(
    ("gpu", "batch", "said"),
    [
        (replace(BUSY, sm_active_pct=80.0), 1.0, "with its SMs active 80.0 % of the time"),
        (replace(BUSY, power_share=0.9), 1.0, "at 90.0 % of its power limit"),
        (replace(BUSY, held_by={"its power limit": 0.5}), 1.0, "with its power limit reached in 50.0 %"),
        (BUSY, 28.8, "with 28.8 of at most 32 images in an execution"),
        (replace(BUSY, power_share=0.5), 31.0, "with 31.0 of at most 32 images in an execution"),
    ],
)
def test_a_full_gpu_has_another_sign_beside_its_utilisation(gpu: GpuUse, batch: float, said: str) -> None:
    code, evidence, advice = verdict(queueing(replace(gpu, util_pct=90.0), batch=batch))
    assert code == "server-compute"
    assert f"the GPU was 90.0 % busy, {said}" in evidence
    assert advice.startswith(FASTER_DEVICE)


@pytest.mark.parametrize(
    ("gpu", "batch"),
    [
        (BUSY, 1.0),  # small kernels, one after the other: busy all the time, and mostly empty
        (replace(BUSY, sm_active_pct=79.9), 1.0),
        (replace(BUSY, sm_active_pct=21.0, power_share=0.95), 32.0),
        (replace(BUSY, power_share=0.499), 32.0),
        (replace(BUSY, power_share=0.899), 28.7),
        (replace(BUSY, held_by={"its temperature": 1.0, "its power limit": 0.499}), 1.0),
        (replace(BUSY, util_pct=89.9, power_share=0.95), 32.0),
        (replace(BUSY, util_pct=None, power_share=0.95), 32.0),
    ],
)
def test_utilisation_alone_is_no_full_gpu(gpu: GpuUse, batch: float) -> None:
    run = queueing(gpu, batch=batch)
    assert full_gpu(run) == ""
    assert verdict(run)[0] != "server-compute"


def test_a_busy_gpu_with_room_gains_from_instances() -> None:
    code, evidence, advice = verdict(queueing(replace(BUSY, sm_active_pct=21.0, power_share=0.25)))
    assert code == "server-queue"
    assert "GPU" not in evidence
    assert advice.startswith(MORE_INSTANCES)


def test_batches_of_one_are_no_sign_where_the_server_makes_no_larger_ones() -> None:
    assert full_gpu(queueing(BUSY, serving={"instances": 1, "max_batch": 1})) == ""
    assert full_gpu(queueing(BUSY, serving={"instances": 1, "max_batch": None})) == ""


def test_one_full_gpu_of_eight_is_full_where_the_server_may_be_on_it() -> None:
    """Their mean is 14.8 %: by it the one that works would have room."""
    unknown = [replace(IDLE, id=f"GPU-{number:08d}-1", serves=False) for number in range(7)]
    full = replace(BUSY, serves=False, power_share=0.97)
    code, evidence, _ = verdict(queueing(*unknown, full, gpu_util_pct=14.8))
    assert code == "server-compute"
    assert "GPU 71ce41fd was 97.0 % busy, at 97.0 % of its power limit" in evidence
    assert full_gpu(queueing(*unknown, replace(full, power_share=None))) == ""
    assert full_gpu(queueing(IDLE, full)).startswith("GPU 71ce41fd was 97.0 % busy")


def test_of_the_gpus_that_serve_the_least_busy_one_has_room() -> None:
    full = replace(BUSY, power_share=0.97)
    assert full_gpu(queueing(full, replace(IDLE, util_pct=5.0))) == ""
    assert full_gpu(queueing(full, replace(full, id="GPU-8674351b", util_pct=93.0))) == (
        "GPU 8674351b was 93.0 % busy, at 97.0 % of its power limit"
    )


def test_gpus_on_which_the_server_only_keeps_a_context_have_no_room_of_its() -> None:
    """It is on all eight, and computes on the first: the others are at 0 to 4 %."""
    full = replace(BUSY, util_pct=99.0, sm_active_pct=95.0)
    others = [replace(BUSY, id=f"GPU-{at:08d}-1", util_pct=4.0 * (at > 4)) for at in range(7)]
    code, evidence, advice = verdict(queueing(full, *others))
    assert code == "server-compute"
    assert "GPU 71ce41fd was 99.0 % busy, with its SMs active 95.0 % of the time" in evidence
    assert advice.startswith(FASTER_DEVICE)
    assert full_gpu(queueing(*others)) == ""


@pytest.mark.parametrize(
    ("most", "power", "code"),
    [
        (2, None, "server-queue"),
        (2, 0.4, "server-queue"),
        (2, 0.6, "server-compute"),
        (7, None, "server-queue"),
        (8, None, "server-compute"),
    ],
)
def test_a_full_batch_of_a_tiny_maximum_is_no_full_gpu(most: int, power: float | None, code: str) -> None:
    """One instance that is 98 % busy, and requests that wait for 60 of 85 ms."""
    run = at_server(
        60, 23, 85, serving={"instances": 1, "max_batch": most}, server_busy=0.98, level=8, in_flight=8.0,
        executed_batch=0.975 * most, each_gpu=(replace(BUSY, util_pct=96.0, power_share=power),), local=False,
    )  # fmt: skip
    found, _, advice = verdict(run)
    assert (found, advice.startswith(MORE_INSTANCES)) == (code, code == "server-queue")


@pytest.mark.parametrize(
    ("local", "code", "advice"),
    [
        (True, "server-compute", FASTER_DEVICE),
        (False, "server-queue", MORE_INSTANCES),
        (None, "server-queue", MORE_INSTANCES),
    ],
)
def test_the_masters_cores_are_the_servers_on_its_own_machine_alone(
    local: bool | None, code: str, advice: str
) -> None:
    """Two machines of one rack are 0.04 ms apart, and a load generator keeps its own cores busy."""
    run = queueing(path={"min_rtt_ns": 40_000}, host_cpu_pct=97.0, local=local)
    found, _, help_ = verdict(run)
    assert (found, help_.startswith(advice)) == (code, True)
