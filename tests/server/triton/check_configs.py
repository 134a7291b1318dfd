"""`python -m tests.server.triton.check_configs FOLDER…`: would Triton take each config.pbtxt as meant?"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What the backend of release 25.06 documents. Of TensorRT's it refuses others; those of CUDA it hands on to
# ONNX Runtime, whose own documentation has `use_tf32` and `enable_cuda_graph`.
KNOWN = {
    "cuda": "use_tf32 cudnn_conv_use_max_workspace use_ep_level_unified_stream enable_cuda_graph",
    "tensorrt": """
        precision_mode max_workspace_size_bytes int8_calibration_table_name int8_use_native_calibration_table
        trt_engine_cache_enable trt_engine_cache_path trt_engine_cache_prefix trt_timing_cache_enable
        trt_timing_cache_path trt_force_timing_cache trt_profile_min_shapes trt_profile_opt_shapes
        trt_profile_max_shapes trt_max_partition_iterations trt_min_subgraph_size trt_dump_subgraphs
        trt_dla_enable trt_dla_core trt_sparsity_enable trt_layer_norm_fp32_fallback
        trt_force_sequential_engine_build trt_context_memory_sharing_enable trt_build_heuristics_enable
        trt_builder_optimization_level trt_detailed_build_log trt_auxiliary_streams trt_tactic_sources
        trt_extra_plugin_lib_paths trt_dump_ep_context_model trt_ep_context_file_path
        trt_ep_context_embed_mode trt_cuda_graph_enable
    """,
}
PROFILE = ("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes")


def main(argv: list[str]) -> int:
    """Check the folders; 1, and a line for each fault that begins with its file, where something is wrong."""
    if not argv or argv[0].startswith("-"):
        print("usage: python -m tests.server.triton.check_configs FOLDER...", file=sys.stderr)
        return 0 if argv in (["-h"], ["--help"]) else 2
    paths = sorted(path for folder in argv for path in Path(folder).rglob("config.pbtxt"))
    found = [fault for path in paths for fault in faults(path)]
    if not paths:
        found = [f"{' '.join(argv)}: no config.pbtxt in there"]
    for fault in found:
        print(fault, file=sys.stderr)
    if not found:
        print(f"{len(paths)} configurations are as Triton takes them")
    return 1 if found else 0


def faults(path: Path) -> list[str]:
    """What is wrong with one file: `file:line: what` where it cannot be parsed, else `file: what` a fault."""
    # Imported late: the servers never need Triton's client.
    from google.protobuf import text_format
    from tritonclient.grpc.model_config_pb2 import ModelConfig

    try:
        config = text_format.Parse(path.read_text(), ModelConfig())
    except text_format.ParseError as error:
        return [f"{path}:{error.GetLine()}: {error}"]
    return [f"{path}: {what}" for what in meaning(config, path.parent.name)]


def meaning(config: Any, folder: str) -> Iterator[str]:
    """What is wrong with a ModelConfig that could be parsed."""
    # An ensemble lies here once for every model it is made for, under the last part of its name.
    if config.name != folder and not (
        config.HasField("ensemble_scheduling") and config.name.endswith(folder)
    ):
        yield f"its name is {config.name!r}, and its folder's {folder!r}"
    if bool(config.backend) == bool(config.platform):
        yield "it has to name a backend or a platform, and not both"
    if not config.input or not config.output:
        yield "it has no input or no output"
    batching = config.dynamic_batching
    if large := [size for size in batching.preferred_batch_size if size > config.max_batch_size]:
        yield f"preferred_batch_size {large} is above max_batch_size {config.max_batch_size}"
    if config.response_cache.enable:
        yield "its response cache is on: the same picture would not be computed twice"
    yield from _warm_up_faults(config)
    for accelerator in config.optimization.execution_accelerators.gpu_execution_accelerator:
        yield from accelerator_faults(accelerator, config)


def _warm_up_faults(config: Any) -> Iterator[str]:
    inputs = {tensor.name: (tensor.data_type, list(tensor.dims)) for tensor in config.input}
    for warm_up in config.model_warmup:
        if not 1 <= warm_up.batch_size <= max(1, config.max_batch_size):
            yield f"warm-up {warm_up.name!r} has batch_size {warm_up.batch_size}"
        given = {name: (tensor.data_type, list(tensor.dims)) for name, tensor in warm_up.inputs.items()}
        if given != inputs:
            yield f"warm-up {warm_up.name!r} gives other inputs than the model has"


def accelerator_faults(accelerator: Any, config: Any) -> Iterator[str]:
    """What is wrong with one accelerator of a ModelConfig."""
    known = KNOWN.get(accelerator.name)
    if known is None:
        yield f"the onnxruntime backend knows no GPU accelerator {accelerator.name!r}"
        return
    if unknown := sorted(set(accelerator.parameters) - set(known.split())):
        yield f"accelerator {accelerator.name} takes no {', '.join(unknown)}"
    given = [accelerator.parameters[key] for key in PROFILE if key in accelerator.parameters]
    if given and len(given) < len(PROFILE):
        yield "a TensorRT profile needs its min, opt and max shapes, all three"
    elif given:
        yield from _profile_faults([shapes(text) for text in given], config)


def shapes(text: str) -> dict[str, list[int]]:
    """`input:1x3x224x224,mask:1x7` as numbers by name; what is no such shape is left out."""
    parts = [part.rpartition(":") for part in text.split(",")]
    return {
        name: [int(number) for number in shape.split("x")]
        for name, _, shape in parts
        if all(number.isdecimal() for number in shape.split("x"))
    }


def _profile_faults(profile: list[dict[str, list[int]]], config: Any) -> Iterator[str]:
    largest = config.max_batch_size
    for tensor in config.input:
        found = [shape.get(tensor.name, []) for shape in profile]
        if any(shape[1:] != list(tensor.dims) for shape in found):
            yield f"the profile's shapes of {tensor.name} are not batches of its dims {list(tensor.dims)}"
            continue
        low, best, high = (shape[0] for shape in found)
        if not low == 1 <= best <= high == largest:
            yield f"the profile's batches {low}, {best}, {high} do not span 1 to {largest}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
