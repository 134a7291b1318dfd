"""What this host has for computing on a GPU, found out by trying it in a process of its own."""

import ctypes
import json
import os
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from server.errors import SetUpError, sentence
from server.hardware.device import CUDA, TENSORRT, DeviceFacts
from server.hardware.nvml import read_gpus
from server.spec import ROOT

LIBRARIES = {CUDA: "libonnxruntime_providers_cuda.so", TENSORRT: "libonnxruntime_providers_tensorrt.so"}
# Building a TensorRT engine even of one product takes a while on a GPU that has just woken up.
TIMEOUT_S = 120.0


def read_facts() -> DeviceFacts:
    """The GPUs, and what ONNX Runtime and PyTorch can do with them; SetUpError where they never answer."""
    gpus = tuple(gpu.name for gpu in read_gpus())
    if not gpus:
        # Without a GPU nothing is tried: that takes seconds, and the answer is known.
        return DeviceFacts()
    folders = library_folders()
    said = json.loads(_run(with_libraries(os.environ, folders)))
    return DeviceFacts(gpus, tuple(said["listed"]), said["failed"], said["torch_cuda"], folders)


def library_folders(packages: Sequence[Path] = ()) -> tuple[str, ...]:
    """Where wheels keep CUDA's and TensorRT's libraries, which the loader does not find by itself."""
    found = [
        folder
        for place in packages or package_folders()
        for folder in (*sorted(place.glob("nvidia/*/lib")), place / "tensorrt_libs")
    ]
    return tuple(str(folder) for folder in found if folder.is_dir())


def package_folders() -> list[Path]:
    """Where wheels are: here, and where PyTorch is, which another environment may hold (swarm/gpu_pack)."""
    torch = find_spec("torch")
    folders = [Path(sysconfig.get_path("purelib"))]
    folders += [Path(torch.origin).parents[1]] if torch and torch.origin else []
    return list(dict.fromkeys(folders))


def with_libraries(environ: Mapping[str, str], folders: tuple[str, ...]) -> dict[str, str]:
    """The environment with these folders first on the loader's path."""
    path = os.pathsep.join(filter(None, (*folders, environ.get("LD_LIBRARY_PATH", ""))))
    return {**environ, "LD_LIBRARY_PATH": path} if folders else dict(environ)


def start_with_libraries(argv: list[str]) -> None:
    """Restart this `python -m server` with the wheels' libraries on the loader's path, if they are not.

    The path is read when a process starts, so that setting it here would change nothing.
    """
    folders = library_folders()
    if not set(folders) <= set(os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)):
        again = [sys.executable, "-m", "server", *argv]
        os.execve(sys.executable, again, with_libraries(os.environ, folders))


def main() -> int:
    """Print as JSON what ONNX Runtime and PyTorch can do in this process."""
    # ONNX Runtime first: PyTorch would load CUDA's libraries for it, and Triton's stub has no PyTorch.
    try:
        import onnxruntime
    except Exception:
        # Whatever is wrong with it, PyTorch can do without.
        listed, failed = [], {}
    else:
        listed = onnxruntime.get_available_providers()
        tried = {name: fault(onnxruntime, name) for name in (CUDA, TENSORRT) if name in listed}
        failed = {name: why for name, why in tried.items() if why}
    import torch

    print(json.dumps({"listed": listed, "failed": failed, "torch_cuda": torch.cuda.is_available()}))
    return 0


def fault(runtime: Any, provider: str) -> str:
    """Why ONNX Runtime does not compute a product of two matrices on a provider; nothing where it does."""
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    # Without this what a provider does not take would silently go to the CPU.
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = runtime.InferenceSession(_product(), options, providers=[provider])
        got = session.get_providers()[0]
        if got == provider:
            session.run(None, {"x": np.eye(2, dtype=np.float32)})
            return ""
        return unloadable(runtime, provider) or f"a session requested with it got {got}"
    except Exception as error:
        # Its kinds of errors are many, and change with its versions; all mean that it is not ready.
        return unloadable(runtime, provider) or sentence(error)


def unloadable(runtime: Any, provider: str) -> str:
    """What the loader says of a provider's library, which ONNX Runtime only logs; nothing where it loads."""
    folder = Path(str(runtime.__file__)).parent / "capi"
    try:
        ctypes.CDLL(str(folder / "libonnxruntime_providers_shared.so"), ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(folder / LIBRARIES[provider]))
    except OSError as error:
        return sentence(error)
    return ""


def _product() -> bytes:
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["y"])], "product", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _run(environ: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "server.hardware.probe"]
    try:
        done = subprocess.run(
            command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except subprocess.TimeoutExpired:
        raise SetUpError(
            f"the GPU did not finish a computation within {TIMEOUT_S:.0f} s: give --device cpu."
        ) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        raise SetUpError(f"the GPU cannot be tested ({last}): give --device cpu.") from None
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
