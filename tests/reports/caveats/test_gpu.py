"""Caveats on GPUs, each with its evidence, and GPUs that look much alike and get none."""

from dataclasses import replace

import pytest

from reports.caveats.gpu import gpu_caveats
from reports.machines.gpus import GpuUse

FINE = GpuUse(
    id="GPU-71ce41fd-3ac0",
    serves=True,
    util_pct=92.0,
    power_share=0.8,
    memory_share=0.4,
    clock_share=0.97,
    pcie_share=0.1,
    held_by={"its power limit": 0.05},
    other_processes=0,
)
OTHER = replace(FINE, id="GPU-8674351b-11aa")


def said(*gpus: GpuUse) -> list[tuple[str, str]]:
    found = list(gpu_caveats(gpus))
    assert not any(one.tainted for one in found)
    return [(one.code, one.text) for one in found]


@pytest.mark.parametrize(
    ("gpu", "code", "text"),
    [
        (
            replace(FINE, held_by={"its power limit": 0.62, "its temperature": 0.02}, clock_share=0.71),
            "gpu-clocks",
            "the GPU: its clocks were held down by its power limit in 62.0 % of the seconds; "
            "its SM clock was 71.0 % of its highest while it worked",
        ),
        (
            replace(FINE, held_by={}, clock_share=0.749),
            "gpu-clocks",
            "the GPU: its SM clock was 74.9 % of its highest while it worked",
        ),
        (
            replace(FINE, held_by={"a hardware slowdown": 0.1}, clock_share=None),
            "gpu-clocks",
            "the GPU: its clocks were held down by a hardware slowdown in 10.0 % of the seconds",
        ),
        (
            replace(FINE, memory_share=0.95),
            "gpu-memory-full",
            "the GPU: 95.0 % of its memory was in use",
        ),
        (
            replace(FINE, link="generation 3 x8 of generation 4 x16", pcie_share=0.7),
            "gpu-pcie",
            "the GPU: its link was generation 3 x8 of generation 4 x16 while it worked; "
            "70.0 % of what its link carries went over it",
        ),
        (
            replace(FINE, other_processes=1),
            "gpu-shared",
            "the GPU: 1 program other than the servers started here used it",
        ),
        (
            replace(FINE, mig=True),
            "gpu-mig",
            "the GPU is in MIG mode, which tells no utilisation of its instances",
        ),
    ],
)
def test_each_of_them(gpu: GpuUse, code: str, text: str) -> None:
    assert said(gpu) == [(code, text)]


@pytest.mark.parametrize(
    "gpu",
    [
        FINE,
        GpuUse(id="0"),
        replace(FINE, memory_share=0.949, pcie_share=0.69, clock_share=0.75),
        replace(FINE, held_by={"its temperature": 0.099}),
        replace(FINE, other_processes=None),
    ],
)
def test_a_gpu_that_gets_none(gpu: GpuUse) -> None:
    assert said(gpu) == []


def test_of_several_it_is_named() -> None:
    assert said(FINE, replace(OTHER, memory_share=0.99)) == [
        ("gpu-memory-full", "GPU 8674351b: 99.0 % of its memory was in use")
    ]


@pytest.mark.parametrize(
    ("utils", "serves", "text"),
    [
        ((97.0, 3.0, 1.0), False, "3 GPUs were sampled, and the busiest was 97.0 % busy"),
        ((2.0, 1.0), False, "2 GPUs were sampled, and the busiest was 2.00 % busy"),
        ((97.0, None), False, "2 GPUs were sampled, and the busiest was 97.0 % busy"),
        ((None, None), False, "2 GPUs were sampled"),
        # It is known; there is only one; all work alike.
        ((97.0, 3.0), True, ""),
        ((97.0,), False, ""),
        ((97.0, 80.0, 60.0), False, ""),
    ],
)
def test_where_it_is_not_known_which_gpus_are_the_servers(
    utils: tuple[float | None, ...], serves: bool, text: str
) -> None:
    found = said(*(replace(FINE, id=str(at), serves=serves, util_pct=util) for at, util in enumerate(utils)))
    assert found == ([("gpus-unknown", f"{text}: which the server uses is not known")] if text else [])
