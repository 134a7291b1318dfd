"""What the benchmark of the latency breakdown says of cells: over HTTP and over gRPC by the same bound."""

from typing import Any

import pytest

from benchmarks.bounds import Bounds
from benchmarks.breakdown import NEEDED, NEEDED_OF_GRPC, judge


def a_run(unexplained: float | None = 0.0, **parts: float | None) -> dict[str, Any]:
    """A mean latency of 1 ms, in hundredths of it; so many of them are not explained."""
    breakdown: dict[str, float | None] = dict.fromkeys((*NEEDED, *NEEDED_OF_GRPC), 0.0)
    breakdown |= {"server_compute": 100.0 - (unexplained or 0.0), "unexplained": unexplained} | parts
    named = {f"{name}_ns": None if value is None else 10_000 * value for name, value in breakdown.items()}
    return {"breakdown": named, "network_most_ns": 0.0, "failures": {}}


def exit_code(cell: str, run: dict[str, Any]) -> int:
    bounds = Bounds("cells")
    judge(bounds, cell, run)
    return bounds.exit_code()


@pytest.mark.parametrize("cell", ["onnx-http/b1/c1", "onnx-grpc/b1/c1"])
def test_95_percent_are_explained_over_both_protocols(cell: str) -> None:
    assert exit_code(cell, a_run(unexplained=4.9)) == 0
    assert exit_code(cell, a_run(unexplained=5.1)) != 0
    assert exit_code(cell, a_run(unexplained=3.0, network=2.1, server_compute=94.9)) != 0


@pytest.mark.parametrize("part", NEEDED)
def test_a_part_that_was_not_read_is_no_0(part: str) -> None:
    for protocol in ("http", "grpc"):
        assert exit_code(f"onnx-{protocol}/b1/c1", a_run(**{part: None})) != 0


@pytest.mark.parametrize("part", NEEDED_OF_GRPC)
def test_only_grpc_waits_for_streams_and_windows(part: str) -> None:
    assert exit_code("onnx-http/b1/c1", a_run(**{part: None})) == 0
    assert exit_code("onnx-grpc/b1/c1", a_run(**{part: None})) != 0
