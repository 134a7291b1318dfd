"""The steps of a pack, and what each runs: studies of our own, at sizes that fit half an hour on a GPU."""

import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

ALONE = "pytorch"
FIVE = (ALONE, "torch", "inductor")
"""What runs wherever PyTorch runs: the service, and its model behind Triton, in five ways."""
RUNTIMES = ("onnx", "trt")
"""What runs where its own runtime is installed too; TensorRT's engine has half precision."""
RISKY = "inductor"
"""The server that compiles as it starts."""
LINKS = "links"
SMALL_S = 60.0


FEW = "--iterations 3 --seconds 1 --warm-up 1"
SHORT = "--iterations 10 --seconds 1.5 --warm-up 1"
"""For many cells: with its warm-up a run took 2.4 to 2.7 s on an H200."""


class LentHost(NamedTuple):
    """What `inferswarm doctor --gpu` says of a host.

    `lacks`: by server, and for emulated links, why it cannot run, empty where it can. `small`: sizes for a
    host without a GPU.
    """

    lacks: Mapping[str, str]
    small: bool = False

    def endpoints(self, among: tuple[str, ...]) -> str:
        """All ways to ask those servers among these that run here, for --endpoints."""
        ways = ((server, ("http",) if server == ALONE else ("http", "grpc")) for server in among)
        return ",".join(f"{server}-{one}" for server, each in ways if self.runs(server) for one in each)

    def lack_of(self, among: tuple[str, ...]) -> str:
        """Why the first of these servers cannot run."""
        return next(filter(None, (self.lacks.get(server, "unknown here") for server in among)), "")

    def without(self, server: str, why: str) -> "LentHost":
        """The same host where a server has been found not to start."""
        return self._replace(lacks={**self.lacks, server: why})

    def runs(self, what: str) -> bool:
        """Whether nothing lacks for it."""
        return not self.lacks.get(what, "unknown here")


Options = Callable[[LentHost], tuple[str, ...] | str]


class PackStep(NamedTuple):
    """A part of the pack's work: `options` is the command of a study, or why there is none, as one text.

    `least_s` is what it takes, about, and what it took on an H200 with 5 to 12 % to spare (docs/gpu_host.md);
    it is not begun with less time left.
    """

    name: str
    what: str
    least_s: float
    options: Options

    def needed_s(self, small: bool) -> float:
        """Without a GPU sizes are others."""
        return min(self.least_s, SMALL_S) if small else self.least_s


def study(host: LentHost, among: tuple[str, ...], sizes: str, small: str) -> tuple[str, ...] | str:
    """The command of step 7 without its results' folder, or why none of these servers can be asked."""
    if not (endpoints := host.endpoints(among)):
        return host.lack_of(among)
    return step7(endpoints, small if host.small else sizes)


def step7(endpoints: str, sizes: str) -> tuple[str, ...]:
    """The command without its results' folder; each cell once, where the sizes say nothing else."""
    command = (sys.executable, "-m", "locust", "-f", "locustfiles/step7.py", "--headless")
    return (*command, "--endpoints", endpoints, "--repeats", "1", *sizes.split())


def timelines(host: LentHost) -> tuple[str, ...] | str:
    sizes = "--batches 1,8,32 --levels 1,16 --iterations 10 --seconds 5 --warm-up 3"
    return study(host, (ALONE,), sizes, f"--batches 1,4 --levels 1,4 {FEW}")


def five(precision: str) -> Options:
    """The five endpoints in one precision."""
    sizes = f"--batches 1,4,8,16,32 --levels 1,16 {SHORT} --precision {precision}"
    # A CPU takes three times as long in half precision.
    small = f"--batches 1 --levels {'1' if precision == 'fp16' else '1,4'} {FEW} --precision {precision}"
    return lambda host: study(host, FIVE, sizes, small)


def saturation(host: LentHost) -> tuple[str, ...] | str:
    if lack := host.lack_of(("torch",)):
        return lack
    sizes = "--batches 1,8,32 --levels 1,2,4,8,16,32,64,128 --iterations 10 --seconds 3 --warm-up 1"
    return step7("torch-http", f"--batches 1 --levels 1,2,4,8 {FEW}" if host.small else sizes)


def payloads(host: LentHost) -> tuple[str, ...] | str:
    if lack := host.lack_of(("torch",)):
        return lack
    ways = [f"torch-{way}" for way in ("http", "jpeg-http", "jpeg-grpc", "uint8-http", "uint8-grpc")]
    sizes = f"--batches 1 --levels 1,4 {FEW}" if host.small else f"--batches 1,8 --levels 1,16 {SHORT}"
    return step7(",".join(ways), sizes)


def link(host: LentHost) -> tuple[str, ...] | str:
    if lack := host.lack_of((LINKS, "torch")):
        return lack
    small = "--levels 4 --seconds 1 --warm-up 1 --repeats 1 --iterations 8"
    sizes = "--levels 8 --seconds 4 --warm-up 1 --repeats 3"
    command = (sys.executable, "-m", "swarm", "run", "-f", "locustfiles/step7_contention.py")
    asked = ("--link", "wan-a100", "--emulate", "none", "--endpoints", "torch-http,torch-grpc")
    # The arms that end in per-user, shared, and shared/bbr.
    return (*command, *asked, "--cells", "*/c*/*[rd]", *(small if host.small else sizes).split())


def runtimes(host: LentHost) -> tuple[str, ...] | str:
    return study(host, RUNTIMES, f"--batches 1,4,8,16,32 --levels 1,16 {SHORT}", f"--batches 1 {FEW}")


def repeated(host: LentHost) -> tuple[str, ...] | str:
    small = f"--batches 1 --levels 1 --repeats 2 {FEW}"
    among = FIVE[:2] if host.small else FIVE
    return study(host, among, f"--batches 1,8,32 --levels 1,16 --repeats 3 {SHORT}", small)


STEPS = (
    PackStep("a-timelines", "the PyTorch service, with GPU timelines", 60, timelines),
    PackStep("b-fp32", "five endpoints, batches 1 to 32, 1 and 16 users, in float32", 170, five("fp32")),
    PackStep("b-fp16", "the same in half precision", 170, five("fp16")),
    PackStep("c-saturation", "1 to 128 users behind the dynamic batcher, and batches to 32", 60, saturation),
    PackStep("d-payloads", "JPEG files and uint8 pixels to Triton", 60, payloads),
    PackStep("f-link", "HTTP against gRPC with 8 users over the emulated path wan-a100", 110, link),
    PackStep("g-runtimes", "ONNX Runtime and TensorRT on the GPU, where they are", 120, runtimes),
    PackStep("h-repeats", "the five in float32 three times, which hypotheses need", 230, repeated),
)
"""Step e, energy, clocks and memory, is computed from the others' results (energy.py)."""
