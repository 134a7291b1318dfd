"""`inferswarm doctor --gpu`: which servers a host with PyTorch alone can run, and on what."""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from server.errors import SetUpError
from server.hardware.compiler import compiler_lack
from server.hardware.device import CUDA, TENSORRT, DeviceFacts
from server.hardware.nvml import driver, read_gpus
from server.hardware.packages import version_of
from server.hardware.probe import read_facts
from server.triton.tritonserver import find_wheel

NAMESPACE = ("unshare", "--net", "true")
NEEDED = ("torch", "open_clip_torch", "fastapi", "locust", "tritonclient")
WITHOUT = "NVML sees none: servers compute on the CPU, or on what PyTorch itself finds"
LINK_PROGRAMS = ("unshare", "nsenter", "ip", "tc")


@dataclass(frozen=True)
class GpuHost:
    """What was found. `lacks`: by server, and for emulated links, why it cannot run; empty where it can."""

    packages: Mapping[str, str]
    gpu: DeviceFacts
    driver: str
    lacks: Mapping[str, str]


def main(as_json: bool) -> int:
    """Print what was found and what can run; 2 where nothing can."""
    host = look()
    lines = [*findings(host), "", *verdicts(host)]
    if as_json:
        print(json.dumps({"lines": lines, "gpus": host.gpu.gpus, "lacks": host.lacks}))
    else:
        print("\n".join(lines))
    if host.lacks["pytorch"] and host.lacks["torch"]:
        print("\n".join(verdicts(host)), file=sys.stderr)
        return 2
    return 0


def look() -> GpuHost:
    """What this machine has."""
    packages = {name: version_of(name) for name in NEEDED}
    missing = [name for name, found in packages.items() if not found]
    base = f"{', '.join(missing)} not installed" if missing else ""
    gpu, gpu_fault = DeviceFacts(), ""
    try:
        if find_spec("torch"):
            gpu = read_facts()
    except SetUpError as error:
        gpu, gpu_fault = DeviceFacts(tuple(one.name for one in read_gpus())), str(error)
    if gpu.gpus and not gpu.torch_cuda:
        gpu_fault = gpu_fault or "PyTorch finds no CUDA device, though NVML sees a GPU"
    pytorch = base or gpu_fault
    torch = pytorch or triton_lack()
    lacks = {
        "pytorch": pytorch,
        "torch": torch,
        "inductor": torch or compiler_lack(),
        "onnx": torch or runtime_lack(gpu, CUDA),
        "trt": torch or runtime_lack(gpu, TENSORRT),
        "links": links_lack(),
    }
    return GpuHost(packages, gpu, driver(), lacks)


def triton_lack() -> str:
    """What tritonserver lacks here."""
    try:
        find_wheel()
    except SetUpError as error:
        return str(error)
    return ""


def runtime_lack(gpu: DeviceFacts, provider: str) -> str:
    """Why ONNX Runtime does not compute with a provider here."""
    if not gpu.gpus:
        return "tried only on a GPU"
    return "" if gpu.runs(provider) else gpu.failed.get(provider, f"no ONNX Runtime here has {provider}")


def links_lack(command: Sequence[str] = NAMESPACE) -> str:
    """Why no network namespace can be made, or set up, which emulated links are made of."""
    if missing := [name for name in LINK_PROGRAMS if not shutil.which(name)]:
        return f"{', '.join(missing)} not there: install iproute2 and util-linux"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no network namespace can be made ({type(error).__name__})"
    return f"no network namespace can be made ({done.stderr.strip()})" if done.returncode else ""


def findings(host: GpuHost) -> Iterator[str]:
    """A line for each thing that was looked for."""
    yield line("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from (line(name, host.packages[name] or "missing") for name in NEEDED)
    yield line("GPU", ", ".join(host.gpu.gpus) or WITHOUT)
    if host.driver:
        yield line("driver", host.driver)


def verdicts(host: GpuHost) -> Iterator[str]:
    """What this host can run, and why not the others."""
    yield "This host can run"
    for name, lack in host.lacks.items():
        yield f"  {name:10} {'no   ' + lack if lack else 'yes'}"


def line(what: str, found: str) -> str:
    """What was looked for, and what was found."""
    return f"{what:15} {found}"
