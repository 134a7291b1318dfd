"""Which device the embedded servers compute on, given what this host has and what was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from server.errors import SetUpError

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
DEVICES = ("auto", "cpu", "cuda")
COMPILED, OPENVINO, TRT = "compiled", "openvino", "trt"
"""The slot of the compiled engine, and what may fill it."""
INSTALL = "install requirements-gpu.txt in a separate virtual environment"
DRIVER = "check for NVIDIA's driver 580 or later, and for the packages of requirements-gpu.txt"
OR_CPU = "or give --device cpu."


@dataclass(frozen=True)
class DeviceFacts:
    """What a host has for computing on a GPU."""

    gpus: tuple[str, ...] = ()
    """The GPUs' names as reported by NVML."""
    listed: tuple[str, ...] = ()
    """The providers that the installed ONNX Runtime was built with; empty if not installed."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """By provider, why a listed one failed to compute a small model."""
    torch_cuda: bool = False
    """Whether PyTorch finds a CUDA device."""
    folders: tuple[str, ...] = ()
    """The folders of CUDA's and TensorRT's libraries in the wheels."""

    def runs(self, provider: str) -> bool:
        """Whether ONNX Runtime computes with it."""
        return provider in self.listed and provider not in self.failed


@dataclass(frozen=True)
class Device:
    """What the embedded servers compute on, and why."""

    name: str = "cpu"
    why: str = ""
    compiled: str = OPENVINO
    """The server in the compiled engine's slot; empty if there is no engine for this device."""
    torch: str = ""
    """PyTorch's device; empty if it chooses itself."""
    folders: tuple[str, ...] = ()

    @property
    def provider(self) -> str:
        """ONNX Runtime's provider for the server `onnx`."""
        return CUDA if self.name == "cuda" else CPU

    def servers(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """These servers, with our engine in the compiled one's place; SetUpError where they do not fit."""
        made = dict.fromkeys(self.compiled if name == COMPILED else name for name in names)
        found = tuple(filter(None, made))
        if OPENVINO in found and TRT in found:
            raise SetUpError("--only takes one of openvino and trt: they use the same slot and ports.")
        if TRT in found and self.compiled != TRT:
            raise SetUpError(f"--only trt: no TensorRT on {self.name} ({self.why}): use openvino or onnx.")
        if not found:
            raise SetUpError(f"--only {COMPILED}: there is no engine for {self.name} ({self.why}): use onnx.")
        return found


CPU_ALONE = Device()


def choose(asked: str, facts: DeviceFacts, engines: bool = True) -> Device:
    """The device of all servers; SetUpError where one that is there, or was asked for, cannot be used.

    `auto` takes the GPU if it and onnxruntime-gpu are present. If they are and ONNX Runtime would
    still compute on the CPU, it is refused: a study must not mistake one for the other.
    `engines`: whether ONNX Runtime is to compute at all, besides PyTorch.
    """
    if asked == "cpu":
        return Device(why="as asked", torch="cpu")
    if missing := lack(facts, engines):
        if asked == "cuda":
            raise SetUpError(f"--device cuda: {missing}, {OR_CPU}")
        if not facts.gpus:
            return Device(why=missing.what)
        # All on the same device: beside an ONNX Runtime on the CPU, PyTorch on a GPU would win by that alone.
        return Device(why=str(missing), torch="cpu")
    if not engines:
        return Device("cuda", facts.gpus[0], "", "cuda")
    if broken := fault(facts):
        raise SetUpError(f"{broken}, {OR_CPU}")
    return _with_engine(Device("cuda", facts.gpus[0], "", "cuda", facts.folders), facts)


class Lack(NamedTuple):
    """What is missing, and what to do about it."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}: {self.fix}"


def lack(facts: DeviceFacts, engines: bool = True) -> Lack | None:
    """What is not there for computing on a GPU."""
    if not facts.gpus:
        return Lack("NVML sees no NVIDIA GPU here", "check its driver, and nvidia-ml-py")
    if not engines:
        return None if facts.torch_cuda else Lack("PyTorch finds no CUDA device", INSTALL)
    if not facts.listed:
        return Lack("ONNX Runtime is not installed", INSTALL)
    if CUDA not in facts.listed:
        return Lack("the installed ONNX Runtime is the CPU build", INSTALL)
    return None


def fault(facts: DeviceFacts) -> Lack | None:
    """What is there for computing on a GPU, but does not."""
    if CUDA in facts.failed:
        return Lack(f"ONNX Runtime lists {CUDA} but would compute on the CPU ({facts.failed[CUDA]})", DRIVER)
    if not facts.torch_cuda:
        return Lack(f"ONNX Runtime computes on {facts.gpus[0]}, but PyTorch finds no CUDA device", INSTALL)
    return None


def _with_engine(device: Device, facts: DeviceFacts) -> Device:
    if facts.runs(TENSORRT):
        return replace(device, compiled=TRT)
    why = facts.failed.get(TENSORRT, "not in this ONNX Runtime")
    missing = f"; no compiled engine, since TensorRT is missing ({why}): install requirements-tensorrt.txt"
    return replace(device, why=device.why + missing)
