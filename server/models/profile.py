"""`inferswarm profile`: where ONNX Runtime spends an inference of the image tower, by operator.

It computes as the embedded `onnx` server does, but alone, and with all cores.
"""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from server.errors import SetUpError
from server.hardware.device import CPU, CUDA, TENSORRT
from server.hardware.probe import start_with_libraries
from server.models.export import export, onnx_path, weights_folder
from server.spec import IMAGE_SIZE, ROOT, add_model_options, model_of

PUBLISHED = ROOT / "reports" / "published" / "step5a-operators.json"
PROVIDERS = {"cpu": CPU, "cuda": CUDA, "tensorrt": TENSORRT, "openvino": "OpenVINOExecutionProvider"}
SETTINGS = {CUDA: {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}}
"""As in triton_repo/onnx: float32, not TF32, and no algorithm search for each new batch size."""
WARM_UP = 2
SESSIONS = 3
"""Sessions that are created and timed: the first may wait for the disk."""
NS_PER_MS = 1e6
FUSED = (
    "Operators are counted as ONNX Runtime runs them, after its graph optimisations: it fuses some (BiasGelu,"
    " Gemm), lays out others anew, and computes what is constant beforehand."
)
GPU = "A GPU provider's times are those of handing work to the GPU, not of its computing."

Event = Mapping[str, Any]


class TraceError(ValueError):
    """A profile that does not hold what was run; the text is one sentence."""


def main(argv: list[str]) -> int:
    """Profile and print: a table for people, or one JSON object."""
    options = parse(argv)
    spec, asked = model_of(options), providers_of(options.providers)
    if asked[0] != CPU:
        start_with_libraries(["profile", *argv])
    # The export tells what it does, and a program that reads JSON wants nothing else.
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        export(spec, weights_folder())
    found = {"event": "profile", "model": spec.name, "weights": spec.weights}
    found |= profile(onnx_path(spec), asked, options.batch, options.batches, options.iterations)
    if options.json:
        print(json.dumps(found))
    else:
        print("\n".join(lines_of(found, json.loads(PUBLISHED.read_text()))))
    return 0


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line of `profile`."""
    parser = argparse.ArgumentParser(prog="inferswarm profile", description=__doc__)
    add_model_options(parser)
    parser.add_argument(
        "--batch", type=_whole, default=1, help="images per profiled inference (default: %(default)s)"
    )
    parser.add_argument(
        "--batches",
        type=_wholes,
        default=(1, 4, 8, 16, 32),
        metavar="N,...",
        help="also time inferences of these batch sizes, without the profiler (default: 1,4,8,16,32)",
    )
    parser.add_argument(
        "--iterations", type=_whole, default=10, help="inferences of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--providers",
        default="cpu",
        metavar="NAME,...",
        help=f"ONNX Runtime's providers, in order of preference, from {', '.join(PROVIDERS)} (default: cpu)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    return parser.parse_args(argv)


def providers_of(text: str) -> list[str]:
    """ONNX Runtime's names of the providers asked for, the processor last of all. Raises SetUpError."""
    import onnxruntime

    names = [name.strip() for name in text.split(",") if name.strip()]
    there = [name for name, long in PROVIDERS.items() if long in onnxruntime.get_available_providers()]
    if not names or not set(names) <= set(there):
        lacking = [name for name in names if name not in there]
        what = f"this onnxruntime has no {lacking[0]}" if lacking else "it has no name"
        raise SetUpError(
            f"--providers {text}: {what}; choose from {','.join(there)}, or install a build with more"
        )
    return [PROVIDERS[name] for name in dict.fromkeys([*names, "cpu"])]


def settled(providers: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Providers with the settings that the embedded server gives them."""
    return [(name, SETTINGS.get(name, {})) for name in providers]


def profile(
    path: Path, providers: list[str], batch: int, batches: Sequence[int], iterations: int
) -> dict[str, Any]:
    """All that is to be told of one ONNX file, as plain values; times are nanoseconds. Raises SetUpError."""
    import onnxruntime

    created_ns, session = [], None
    for _ in range(SESSIONS):
        del session
        began_ns = time.perf_counter_ns()
        session = open_session(path, providers)
        created_ns.append(time.perf_counter_ns() - began_ns)
    return {
        **facts_of(path),
        "onnxruntime": onnxruntime.__version__,
        "asked": providers,
        "session_ns": created_ns,
        "batch": batch,
        **_traced(path, providers, batch, iterations),
        "latencies": [
            {"batch": size, "iterations": iterations, **_timed(session, size, iterations)} for size in batches
        ],
    }


def open_session(path: Path, providers: Sequence[str], trace: str = "") -> Any:
    """As the embedded server's: idle threads do not spin. `trace` begins the name of a profile it writes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if trace:
        options.enable_profiling, options.profile_file_prefix = True, trace
    return onnxruntime.InferenceSession(str(path), options, providers=settled(providers))


def facts_of(path: Path) -> dict[str, Any]:
    """Of the file itself, before ONNX Runtime fuses anything: bytes, nodes, opset."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    opset = next(known.version for known in model.opset_import if known.domain in ("", "ai.onnx"))
    return {"file_bytes": path.stat().st_size, "file_nodes": len(model.graph.node), "opset": opset}


def _timed(session: Any, batch: int, iterations: int) -> dict[str, int]:
    """Mean, least and most of some inferences after a warm-up."""
    times_ns = list(_inferences(session, batch, iterations))[WARM_UP:]
    mean_ns = round(sum(times_ns) / len(times_ns))
    return {"mean_ns": mean_ns, "min_ns": min(times_ns), "max_ns": max(times_ns)}


def _inferences(session: Any, batch: int, iterations: int) -> Iterator[int]:
    """Nanoseconds of each inference, those of the warm-up first."""
    import numpy as np

    pixels = np.random.default_rng(0).standard_normal((batch, 3, IMAGE_SIZE, IMAGE_SIZE), dtype=np.float32)
    for _ in range(WARM_UP + iterations):
        began_ns = time.perf_counter_ns()
        session.run(["embedding"], {"input": pixels})
        yield time.perf_counter_ns() - began_ns


def _traced(path: Path, providers: list[str], batch: int, iterations: int) -> dict[str, Any]:
    """What the profiler of a session of its own says; its trace is not kept."""
    with tempfile.TemporaryDirectory(prefix="inferswarm-profile-") as folder:
        session = open_session(path, providers, str(Path(folder, "trace")))
        list(_inferences(session, batch, iterations))
        events = json.loads(Path(session.end_profiling()).read_text())
    return {**operators_of(events, WARM_UP), "fallbacks": fallbacks_of(events, providers)}


def operators_of(events: Sequence[Event], warm_up: int) -> dict[str, Any]:
    """The trace of one session, without its first `warm_up` inferences, as plain values. Raises TraceError.

    `operators`: each type with its count of nodes, mean nanoseconds per inference and share of all operators'
    time, greatest first; `providers`: nodes by who ran them; `inference_ns`: the mean of whole inferences;
    `inferences` is how many that is. ONNX Runtime rounds each node's time down to a microsecond.
    """
    began = sorted(event["ts"] for event in events if event["name"] == "model_run")[warm_up:]
    if not began:
        raise TraceError(f"ONNX Runtime's profile has no inference after {warm_up} of warm-up")
    whole_us = [event["dur"] for event in events if event["name"] == "model_run" and event["ts"] >= began[0]]
    kernels = [event for event in events if is_kernel(event) and event["ts"] >= began[0]]
    spent_us = Counter[str]()
    for event in kernels:
        spent_us[event["args"]["op_name"]] += event["dur"]
    if not spent_us.total():
        raise TraceError("ONNX Runtime's profile has no operator that took any time")
    nodes = nodes_of(kernels)
    counts = Counter(operator for operator, _ in nodes.values())
    return {
        "operators": [
            {
                "operator": name,
                "nodes": counts[name],
                "time_ns": round(1000 * us / len(began)),
                "share": us / spent_us.total(),
            }
            for name, us in spent_us.most_common()
        ],
        "executed_nodes": len(nodes),
        "providers": dict(Counter(provider for _, provider in nodes.values()).most_common()),
        "inferences": len(began),
        "inference_ns": round(1000 * sum(whole_us) / len(began)),
    }


def fallbacks_of(events: Iterable[Event], asked: Sequence[str]) -> list[dict[str, Any]]:
    """Operators that fell back on the processor, and nodes, most first; None if it was asked for first."""
    if asked[0] == CPU:
        return []
    nodes = nodes_of(event for event in events if is_kernel(event)).values()
    fell = Counter(operator for operator, provider in nodes if provider == CPU)
    return [{"operator": operator, "nodes": count} for operator, count in fell.most_common()]


def nodes_of(kernels: Iterable[Event]) -> dict[tuple[str, str], tuple[str, str]]:
    """Each node that ran, by name and number: its operator and its execution provider."""
    return {
        (event["name"], event["args"]["node_index"]): (event["args"]["op_name"], event["args"]["provider"])
        for event in kernels
    }


def is_kernel(event: Event) -> bool:
    """Whether an event is one node's computing."""
    return event.get("cat") == "Node" and str(event["name"]).endswith("_kernel_time")


def _whole(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"takes a whole number, 1 or more, not {text!r}")
    return int(text)


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_whole(part) for part in text.split(",")))


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
