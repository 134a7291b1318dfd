"""Memory that is kept: what glibc is told, and what comes of it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from swarm.distributed.worker_cell import (
    KEPT_BYTES,
    M_MMAP_MAX,
    M_TRIM_THRESHOLD,
    ask_for_huge_pages,
    keep_memory,
)

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[3]
HUGE_PAGES_KB = """
import re, sys
from pathlib import Path
from swarm.distributed.worker_cell import prepare_memory

def huge_kb() -> int:
    told = Path("/proc/self/smaps_rollup").read_text()
    return int(re.search(r"AnonHugePages: +(\\d+)", told)[1])

setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
if not prepare_memory() or not setting.exists() or "[never]" in setting.read_text():
    sys.exit(3)
before, block = huge_kb(), bytes(b"x" * 40_000_000)
print(huge_kb() - before)
"""
PAGE_FAULTS = """
import resource, sys
from swarm.distributed.worker_cell import keep_memory

def faults() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        bytes(bytearray(20_000_000))
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if not keep_memory():
    sys.exit(3)
faults()
print(faults())
"""


def test_glibc_is_told_to_map_nothing_and_to_trim_late() -> None:
    told: list[tuple[int, int]] = []
    assert keep_memory(SimpleNamespace(mallopt=lambda *asked: told.append(asked) or 1))  # type: ignore[arg-type,func-returns-value]
    assert told == [(M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, KEPT_BYTES)]


def test_another_c_library_is_left_alone() -> None:
    assert not keep_memory(SimpleNamespace())  # type: ignore[arg-type]
    assert not keep_memory(SimpleNamespace(mallopt=lambda *_: 0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("program", "least", "most"),
    [(PAGE_FAULTS, 0, 1_000), (HUGE_PAGES_KB, 30_000, 1 << 30)],  # without it they are 48,000, and 0
)
def test_what_is_freed_serves_again_and_copies_lie_in_huge_pages(program: str, least: int, most: int) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this kernel or C library cannot")
    assert least <= int(done.stdout) < most


def test_without_madvise_or_memory_nothing_is_asked() -> None:
    def nothing(_: int) -> int:
        return 0

    poor = SimpleNamespace(malloc=nothing, free=nothing, madvise=nothing)
    for library in (SimpleNamespace(), poor):
        assert not ask_for_huge_pages(1 << 22, library)  # type: ignore[arg-type]
