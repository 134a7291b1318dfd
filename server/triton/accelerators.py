"""What may stand in a config.pbtxt as a GPU accelerator of Triton's onnxruntime backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# What the backend of release 25.06 documents. Of TensorRT's it refuses others; those of CUDA it hands on to
# ONNX Runtime, whose own documentation has `use_tf32` and `enable_cuda_graph`.
KNOWN = {
    "cuda": frozenset(
        ["use_tf32", "cudnn_conv_use_max_workspace", "use_ep_level_unified_stream", "enable_cuda_graph"]
    ),
    "tensorrt": frozenset(
        [
            *("precision_mode", "max_workspace_size_bytes"),
            *("int8_calibration_table_name", "int8_use_native_calibration_table"),
            *("trt_engine_cache_enable", "trt_engine_cache_path", "trt_engine_cache_prefix"),
            *("trt_timing_cache_enable", "trt_timing_cache_path", "trt_force_timing_cache"),
            *("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes"),
            *("trt_max_partition_iterations", "trt_min_subgraph_size", "trt_dump_subgraphs"),
            *("trt_dla_enable", "trt_dla_core", "trt_sparsity_enable", "trt_layer_norm_fp32_fallback"),
            *("trt_force_sequential_engine_build", "trt_context_memory_sharing_enable"),
            *("trt_build_heuristics_enable", "trt_builder_optimization_level", "trt_detailed_build_log"),
            *("trt_auxiliary_streams", "trt_tactic_sources", "trt_extra_plugin_lib_paths"),
            *("trt_dump_ep_context_model", "trt_ep_context_file_path", "trt_ep_context_embed_mode"),
            "trt_cuda_graph_enable",
        ]
    ),
}
PROFILE = ("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes")


def accelerator_faults(accelerator: Any, config: Any) -> Iterator[str]:
    """What is wrong with one accelerator of a ModelConfig."""
    known = KNOWN.get(accelerator.name)
    if known is None:
        yield f"the onnxruntime backend knows no GPU accelerator {accelerator.name!r}"
        return
    if unknown := sorted(set(accelerator.parameters) - known):
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
