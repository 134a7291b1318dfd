"""Triton's model repositories, made of triton_repo: for servers here, and for containers on a GPU host."""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from server.cache import made_once
from server.spec import FP32, ROOT

STEPS = {"jpeg": "decode_jpeg", "uint8": "normalise_uint8"}
"""By payload: the model that turns it into float32 pixels."""
PAYLOADS = (FP32, *STEPS)
SOURCE = ROOT / "triton_repo"
TENSORS = SOURCE / "tensors.py"
PREPROCESS = ROOT / "server" / "models" / "preprocess.py"
"""What else a payload's model imports: it treats a payload as the service does."""
TRITON_MODELS = {
    "onnx": "openclip_vit_b32",
    "openvino": "openclip_vit_b32_openvino",
    "trt": "openclip_vit_b32_trt",
    "torch": "openclip_vit_b32_torch",
    "inductor": "openclip_vit_b32_inductor",
    "emulated": "emulated",
}
"""The model of each server; the names of its endpoints begin with the server's."""
TEMPLATE = TRITON_MODELS["onnx"]
"""The model that the ensembles are written for."""
CONTAINERS = ("onnx", "trt")
QUEUE_DELAY = re.compile(r"(max_queue_delay_microseconds:\s*)\d+")
LARGEST_BATCH = re.compile(r"^max_batch_size:\s*(\d+)", re.MULTILINE)
INSTANCES = re.compile(r"(instance_group.*count:\s*)\d+")

Files = Mapping[str, bytes]
"""File contents, by their paths in a model repository."""


def ensemble(model: str, payload: str) -> str:
    """The name of the ensemble that takes a payload for a model."""
    return f"{model}_{payload}"


def served(model: str, payloads: Iterable[str]) -> tuple[str, ...]:
    """The models that requests with these payloads name."""
    return tuple(model if payload == FP32 else ensemble(model, payload) for payload in payloads)


def make_repository(
    engine: str,
    queue_delay_us: int,
    instances: int,
    parameters: Mapping[str, str],
    payloads: Iterable[str] = (FP32,),
) -> Path:
    """A model repository of triton_repo/`engine`, of what takes `payloads` for it, and of `null`.

    It is kept under a name that says what is in it.
    """
    own = SOURCE / engine / TRITON_MODELS[engine]
    config = render_config((own / "config.pbtxt").read_text(), queue_delay_us, instances, parameters)
    files = {**model_files(own), **repository_files(own.name, config, payloads)}
    contents = b"".join(name.encode() + files[name] for name in sorted(files))
    return made_once(f"triton/{engine}", contents, lambda folder: _write(folder, files))


def largest_batch(engine: str) -> int:
    """The most images that an execution of triton_repo/`engine` takes, as its configuration says."""
    config = (SOURCE / engine / TRITON_MODELS[engine] / "config.pbtxt").read_text()
    found = LARGEST_BATCH.search(config)
    return int(found[1]) if found else 1


def lay_out(onnx: Path, folder: Path, facts: Mapping[str, str]) -> None:
    """Make `folder`/onnx and `folder`/trt for containers: a model, what takes JPEG and uint8 for it, `null`.

    `facts` become parameters of the models: which weights they hold. What is there already is written over.
    """
    for server in CONTAINERS:
        model = TRITON_MODELS[server]
        _write(folder / server, container_files(model, facts))
        _same_file(onnx, folder / server / model / "1" / "model.onnx")


def container_files(model: str, facts: Mapping[str, str]) -> Files:
    """What one container's repository holds besides the exported model."""
    config = with_parameters((SOURCE / "gpu" / model / "config.pbtxt").read_text(), facts)
    return repository_files(model, config, PAYLOADS)


def render_config(text: str, queue_delay_us: int, instances: int, parameters: Mapping[str, str]) -> str:
    """A config.pbtxt with another queue delay in microseconds, number of instances, and parameters added."""
    text = QUEUE_DELAY.sub(rf"\g<1>{queue_delay_us}", text)
    return with_parameters(INSTANCES.sub(rf"\g<1>{instances}", text), parameters)


def with_parameters(text: str, parameters: Mapping[str, str]) -> str:
    """A config.pbtxt with parameters added at its end."""
    for key, value in parameters.items():
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        text += f'parameters {{ key: "{key}" value {{ string_value: "{quoted}" }} }}\n'
    return text


def repository_files(model: str, config: str, payloads: Iterable[str]) -> Files:
    """What is alike in all: a model's config.pbtxt, the ensembles before it with their steps, and `null`."""
    files = {f"{model}/config.pbtxt": config.encode(), **model_files(SOURCE / "null" / "null")}
    for payload in (payload for payload in payloads if payload != FP32):
        template = (SOURCE / "payloads" / payload / "config.pbtxt").read_text()
        files[f"{ensemble(model, payload)}/config.pbtxt"] = template.replace(TEMPLATE, model).encode()
        files |= model_files(SOURCE / "payloads" / STEPS[payload], PREPROCESS)
    return files


def model_files(folder: Path, *imported: Path) -> Files:
    """A model of the Python backend as it lies in triton_repo, with what its model.py imports."""
    own = {f"{folder.name}/{name}": (folder / name).read_bytes() for name in ("config.pbtxt", "1/model.py")}
    return own | {f"{folder.name}/1/{path.name}": path.read_bytes() for path in (TENSORS, *imported)}


def _write(folder: Path, files: Files) -> None:
    for name, data in files.items():
        # Triton wants a version folder of every model, of those without files in it, too.
        (folder / Path(name).parts[0] / "1").mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _same_file(source: Path, target: Path) -> None:
    # A second name for the same 350 MB, where both are on one file system.
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
