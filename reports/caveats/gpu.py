"""Caveats on the GPUs of one run: what held them back, who else used them, and which of them is meant."""

from collections.abc import Iterator, Sequence

from reports.caveat import Caveat, caveat
from reports.format import digits, plural
from reports.machines.gpus import IDLE_PCT, GpuUse

HELD_SHARE = 0.1
"""Of the seconds: clocks that are held down more seldom change no mean by much."""
SLOW_CLOCK = 0.75
"""Of the highest clock: products that are sold overclocked reach 80 % of the one that they state."""
FULL_MEMORY = 0.95
"""Of the memory: what is left is about what a context and a library take for themselves."""
FULL_LINK = 0.7
"""Of what a PCIe link carries: packets' headers take a fifth, and a mean over bursts is below them."""
EVEN = 1 / 3
"""Least utilisation beside the most: GPUs that work alike may all be the server's."""


def gpu_caveats(gpus: Sequence[GpuUse]) -> Iterator[Caveat]:
    """Every caveat on the GPUs that the server uses, or may use."""
    for gpu in gpus:
        name = name_of(gpu, gpus)
        yield from _clocks(gpu, name)
        if gpu.memory_share is not None and gpu.memory_share >= FULL_MEMORY:
            used = f"{digits(100 * gpu.memory_share)} % of its memory was in use"
            yield caveat("gpu-memory-full", f"{name}: {used}")
        yield from _pcie(gpu, name)
        if gpu.other_processes:
            others = plural(gpu.other_processes, "program")
            yield caveat("gpu-shared", f"{name}: {others} other than the servers started here used it")
        if gpu.mig:
            yield caveat("gpu-mig", f"{name} is in MIG mode, which tells no utilisation of its instances")
    yield from _which(gpus)


def name_of(gpu: GpuUse, gpus: Sequence[GpuUse]) -> str:
    """The short id of a GPU where there are several; else `the GPU`."""
    return f"GPU {gpu.id.removeprefix('GPU-')[:8]}" if gpus[1:] else "the GPU"


def _clocks(gpu: GpuUse, name: str) -> Iterator[Caveat]:
    said = [
        f"its clocks were held down by {what} in {digits(100 * share)} % of the seconds"
        for what, share in sorted(gpu.held_by.items())
        if share >= HELD_SHARE
    ]
    if gpu.clock_share is not None and (said or gpu.clock_share < SLOW_CLOCK):
        said.append(f"its SM clock was {digits(100 * gpu.clock_share)} % of its highest while it worked")
    if said:
        yield caveat("gpu-clocks", f"{name}: {'; '.join(said)}")


def _pcie(gpu: GpuUse, name: str) -> Iterator[Caveat]:
    said = [f"its link was {gpu.link} while it worked"] if gpu.link else []
    if gpu.pcie_share is not None and gpu.pcie_share >= FULL_LINK:
        said.append(f"{digits(100 * gpu.pcie_share)} % of what its link carries went over it")
    if said:
        yield caveat("gpu-pcie", f"{name}: {'; '.join(said)}")


def _which(gpus: Sequence[GpuUse]) -> Iterator[Caveat]:
    """Where several GPUs were sampled, worked differently, and it is not known which the server uses."""
    if len(gpus) < 2 or any(gpu.serves for gpu in gpus):
        return
    known = [gpu.util_pct for gpu in gpus if gpu.util_pct is not None]
    most = max(known, default=0.0)
    if len(known) == len(gpus) and most >= IDLE_PCT and min(known) >= EVEN * most:
        return
    said = f", and the busiest was {digits(most)} % busy" if known else ""
    yield caveat("gpus-unknown", f"{len(gpus)} GPUs were sampled{said}: which the server uses is not known")
