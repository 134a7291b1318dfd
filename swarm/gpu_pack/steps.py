"""The steps of a pack, and what each runs: studies of our own, at sizes that fit half an hour on a GPU."""

import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

ALONE, BEHIND = "pytorch", ("torch", "inductor")
"""What runs wherever PyTorch does: the service, and its model behind Triton."""
BESIDES = ("onnx", "trt")
"""What runs where its own runtime is there as well."""
FP16_TOO = ("pytorch", "torch", "inductor", "trt")
LINKS = "links"


class LentHost(NamedTuple):
    """What `python -m server doctor --gpu` says of a host.

    `lacks`: by server, and for emulated links, why it cannot run, empty where it can. `small`: sizes for a
    host without a GPU.
    """

    lacks: Mapping[str, str]
    small: bool = False

    def endpoints(self, among: tuple[str, ...]) -> str:
        """All ways to ask those servers among these that run here, for --endpoints."""
        names = [f"{ALONE}-http"] if ALONE in among and self.runs(ALONE) else []
        names += [
            f"{server}-{protocol}"
            for server in (*BEHIND, *BESIDES)
            if server in among and self.runs(server)
            for protocol in ("http", "grpc")
        ]
        return ",".join(names)

    def runs(self, what: str) -> bool:
        """Whether nothing lacks for it."""
        return not self.lacks.get(what, "it is unknown here")


class PackStep(NamedTuple):
    """A part of the pack's work: `options` of a study, or why there is none, as one text.

    `least_s` is what it needs at least; it is not begun with less time left.
    """

    name: str
    what: str
    least_s: float
    options: Callable[[LentHost], tuple[str, ...] | str]


def study(file: str, endpoints: str, sizes: str, *more: str) -> tuple[str, ...] | str:
    """The command of a study without its results' folder."""
    if not endpoints:
        return "none of its servers can run here"
    command = (sys.executable, "-m", "locust", "-f", f"locustfiles/{file}.py", "--headless")
    return (*command, "--endpoints", endpoints, *sizes.split(), *more)


def timelines(host: LentHost) -> tuple[str, ...] | str:
    sizes = "--batches 1,8,32 --levels 1,16 --iterations 10 --seconds 5 --warm-up 3"
    few = "--batches 1,4 --levels 1,4 --iterations 3 --seconds 1 --warm-up 1"
    return study("step7", host.endpoints((ALONE,)), few if host.small else sizes)


def five(precision: str) -> Callable[[LentHost], tuple[str, ...] | str]:
    """The five endpoints, and what else can run, in one precision."""

    def options(host: LentHost) -> tuple[str, ...] | str:
        servers = FP16_TOO if precision == "fp16" else (ALONE, *BEHIND, *BESIDES)
        sizes = "--batches 1,4,8,16,32 --levels 1,16 --iterations 10 --seconds 1 --warm-up 1"
        # A CPU takes three times as long in half precision.
        levels = "1" if precision == "fp16" else "1,4"
        few = f"--batches 1 --levels {levels} --iterations 3 --seconds 1 --warm-up 1"
        given = few if host.small else sizes
        return study("step7", host.endpoints(servers), given, "--precision", precision)

    return options


def saturation(host: LentHost) -> tuple[str, ...] | str:
    sizes = "--batches 1,8,32 --levels 1,2,4,8,16,32,64,128 --iterations 10 --seconds 2 --warm-up 1"
    few = "--batches 1 --levels 1,2,4,8 --iterations 3 --seconds 1 --warm-up 1"
    wanted = "torch-http" if host.runs("torch") else ""
    return study("step7", wanted, few if host.small else sizes)


def payloads(host: LentHost) -> tuple[str, ...] | str:
    sizes = "--batches 1,8 --levels 1,16 --iterations 10 --seconds 1 --warm-up 1"
    few = "--batches 1 --levels 1,4 --iterations 3 --seconds 1 --warm-up 1"
    ways = [f"torch-{way}" for way in ("http", "jpeg-http", "jpeg-grpc", "uint8-http", "uint8-grpc")]
    return study("step7", ",".join(ways) if host.runs("torch") else "", few if host.small else sizes)


def link(host: LentHost) -> tuple[str, ...] | str:
    if lack := host.lacks.get(LINKS, "") or host.lacks.get("torch", ""):
        return lack
    sizes = "--levels 16 --seconds 4 --warm-up 1 --repeats 1"
    # The arms that end in per-user, shared, and shared/bbr.
    few = "--levels 4 --seconds 1 --warm-up 1 --repeats 1 --iterations 8 --cells */c4/*[rd]"
    command = (sys.executable, "-m", "swarm", "run", "-f", "locustfiles/step7_contention.py")
    asked = ("--link", "wan-a100", "--emulate", "none", "--endpoints", "torch-http,torch-grpc")
    return (*command, *asked, *(few if host.small else sizes).split())


STEPS = (
    PackStep("a-timelines", "the PyTorch service, with GPU timelines", 30, timelines),
    PackStep("b-fp32", "five endpoints, batches 1 to 32, 1 and 16 users, in float32", 100, five("fp32")),
    PackStep("b-fp16", "the same in half precision", 100, five("fp16")),
    PackStep("c-saturation", "1 to 128 users behind the dynamic batcher, and batches to 32", 45, saturation),
    PackStep("d-payloads", "JPEG files and uint8 pixels to Triton", 45, payloads),
    PackStep("f-link", "HTTP against gRPC over the emulated path wan-a100", 60, link),
)
"""PackStep e, energy, clocks and memory, is read off the others' results (energy.py)."""
