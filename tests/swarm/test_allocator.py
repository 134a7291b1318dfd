"""Memory that is kept: what glibc is told, and what comes of it."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from swarm.allocator import KEPT_BYTES, M_MMAP_MAX, M_TRIM_THRESHOLD, keep_memory

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import resource, sys
from swarm.allocator import keep_memory

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


def test_what_is_freed_serves_again_without_page_faults() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library cannot be told to keep memory")
    assert int(done.stdout) < 1_000, "without it they are 48,000"
