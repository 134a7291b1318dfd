"""An operator profile for a person: what ONNX Runtime did beside what was published of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from server.models.operator_profile import CPU

NS_PER_MS = 1e6
FUSED = (
    "Operators are counted as ONNX Runtime runs them, after its graph optimisations: it fuses some (BiasGelu,"
    " Gemm), lays out others anew, and computes what is constant beforehand."
)
GPU = "A GPU provider's times are those of handing work to the GPU, not of its computing."


def lines_of(found: Mapping[str, Any], published: Mapping[str, Any]) -> Iterator[str]:
    """The profile, line by line; `published` as reports/published/step5a-operators.json has it."""
    sessions = ", ".join(f"{ns / NS_PER_MS:.0f}" for ns in found["session_ns"])
    yield f"{found['model']}, weights {found['weights']}, onnxruntime {found['onnxruntime']}"
    yield (
        f"file: {found['file_bytes'] / 1e6:.0f} MB ({found['file_bytes'] / 2**20:.0f} MiB),"
        f" {found['file_nodes']:,} nodes, opset {found['opset']}"
        f" (published {published['file_mb']} MB, {published['file_nodes']:,}, opset {published['opset']})"
    )
    yield f"session creation: {sessions} ms, one after the other (published {published['session_ms']} ms)"
    yield f"providers: {providers_said(found)}"
    yield ""
    yield f"{'operator':26} {'nodes':>6} {'ms':>9} {'share %':>8} {'published %':>12}"
    yield from _operators(found, published["shares_pct"])
    yield (
        f"{found['executed_nodes']:,} nodes ran, {found['inferences']} inferences of batch {found['batch']},"
        f" {found['inference_ns'] / NS_PER_MS:.1f} ms each with the profiler on"
    )
    yield FUSED
    if found["asked"][0] != CPU:
        yield GPU
    yield ""
    yield f"{'batch':>5} {'mean ms':>9} {'lowest':>9} {'highest':>9} {'published':>10}"
    for timed in found["latencies"]:
        theirs = published["latency_ms"].get(str(timed["batch"]), "–")
        ours = [f"{timed[name] / NS_PER_MS:9.1f}" for name in ("mean_ns", "min_ns", "max_ns")]
        yield f"{timed['batch']:5} {' '.join(ours)} {theirs:>10}"
    yield f"Published is what others measured with another machine: {published['source']}."


def _operators(found: Mapping[str, Any], theirs: Mapping[str, float]) -> Iterator[str]:
    for one in found["operators"]:
        yield (
            f"{one['operator']:26} {one['nodes']:6,} {one['time_ns'] / NS_PER_MS:9.3f}"
            f" {100 * one['share']:8.1f} {theirs.get(one['operator'], '–'):>12}"
        )
    ran = {one["operator"] for one in found["operators"]}
    for name in theirs:
        if name not in ran:
            yield f"{name:26} {'–':>6} {'–':>9} {'–':>8} {theirs[name]:>12}"


def providers_said(found: Mapping[str, Any]) -> str:
    """Which provider ran how many nodes, and what fell back on the processor."""
    ran = ", ".join(f"{name} {count:,} nodes" for name, count in found["providers"].items())
    if found["asked"][0] == CPU:
        return f"{ran}; CPUExecutionProvider only, so nothing could fall back"
    fell = ", ".join(f"{one['operator']} {one['nodes']:,}" for one in found["fallbacks"])
    return f"{ran}; fallen back on the processor: {fell or 'nothing'}"
