"""`python -m server.triton.check_configs FOLDER…`: would Triton take each config.pbtxt as it is meant?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from server.triton.accelerators import accelerator_faults


def main(argv: list[str]) -> int:
    """Check the folders; 1, and a line for each fault that begins with its file, where something is wrong."""
    if not argv or argv[0].startswith("-"):
        print("usage: python -m server.triton.check_configs FOLDER...", file=sys.stderr)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
