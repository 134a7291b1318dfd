"""The command line of `up`: which servers it asks for, and how long an emulated model sleeps."""

import argparse
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from server.embedded.plans import GATEWAY, INDUCTOR, ONNX, PYTORCH_ENGINES, TORCH, TRITON_PORTS
from server.errors import SetUpError
from server.hardware.device import COMPILED, DEVICES, OPENVINO, TRT
from server.spec import FP32, PRECISIONS, add_model_options
from server.triton.repository import PAYLOADS, largest_batch
from server.triton.tritonserver import VARIABLE

EMULATED = "emulated"
START_S, BUILD_S = 180.0, 900.0
SERVERS = ("pytorch", *TRITON_PORTS, GATEWAY)
DEFAULT = ("pytorch", ONNX, COMPILED)
IN_PYTORCH = ("pytorch", *PYTORCH_ENGINES)
"""Those that compute in the type of --precision."""
ALWAYS_FP32 = (ONNX, OPENVINO, COMPILED)
"""For `trt` the configuration sets the type."""
LONGEST_MS = 60_000.0


@dataclass(frozen=True)
class EmulationProfile:
    """A service time of `base_ms + per_image_ms * batch`, `cold_ms` longer for the first of each size.

    An execution of a size in `sizes_ms` takes that time instead.
    """

    base_ms: float
    per_image_ms: float
    cold_ms: float = 0.0
    name: str = ""
    sizes_ms: tuple[tuple[int, float], ...] = ()

    def describe(self) -> str:
        """For people: `a100: 3.11 ms + 1.29 ms an image`."""
        name = f"{self.name}: " if self.name else ""
        sizes = "".join(f", {took_ms:g} ms for a batch of {size}" for size, took_ms in self.sizes_ms)
        cold = f", {self.cold_ms:g} ms more for the first of a batch size" if self.cold_ms else ""
        return f"{name}{self.base_ms:g} ms + {self.per_image_ms:g} ms an image{sizes}{cold}"

    def parameters(self) -> dict[str, str]:
        """What the copy of the model's configuration is given."""
        times = {"base_ms": self.base_ms, "per_image_ms": self.per_image_ms, "cold_ms": self.cold_ms}
        told = {name: repr(value) for name, value in times.items()} | {"emulated": self.describe()}
        # A model without such sizes keeps the configuration, and so the cached repository, that it had.
        return told | ({"sizes_ms": json.dumps(dict(self.sizes_ms))} if self.sizes_ms else {})


PROFILES = {
    "a100": EmulationProfile(3.11, 1.29, name="a100"),
    "rtx4080": EmulationProfile(4.03, 1.67, name="rtx4080"),
    "rtx4090": EmulationProfile(3.12, 1.29, name="rtx4090"),
}
"""ONNX Runtime as published: on an A100 SXM4 4.4 ms for one image, and 1,243,848 us for 679 in 119 requests.

4.4 = base + image and 1243.848 = 119 base + 679 image, so base = (679 * 4.4 - 1243.848) / (679 - 119) = 3.11
ms, and 4.4 - 3.11 = 1.29 ms an image, if no two of those requests shared an execution: Triton counts the time
of a shared one for each request in it. Of the others only one image's time is published, 5.7 and 4.41 ms;
that it splits as the A100's does is assumed.
"""
FORMS = (
    f"{', '.join(PROFILES)}, or milliseconds as in 3.1+1.3 (base + an image), "
    "5+0,3:300 (300 for a batch of 3) or 40+0/500 (500 more for the first of a batch size)"
)


def profile_of(text: str) -> EmulationProfile:
    """A profile's name or `BASE+PER` in milliseconds, either with `,SIZE:MS` for sizes and with `/COLD`.

    SetUpError for anything else.
    """
    lines, slash, cold = text.strip().partition("/")
    line, *sizes = lines.split(",")
    known = PROFILES.get(line)
    base, _, per_image = (f"{known.base_ms}+{known.per_image_ms}" if known else line).partition("+")
    try:
        times = [float(number) for number in (base, per_image, cold if slash else "0")]
        sizes_ms = tuple((int(size), float(took)) for size, _, took in (one.partition(":") for one in sizes))
    except ValueError:
        times, sizes_ms = [math.nan] * 3, ()
    right = all(0 <= time <= LONGEST_MS for time in (*times, *(took for _, took in sizes_ms)))
    if not right:
        raise SetUpError(f"--emulate {text!r} is not a service time: give {FORMS}, each at most 60000.")
    _check_sizes(text, [size for size, _ in sizes_ms])
    base_ms, per_image_ms, cold_ms = times
    return EmulationProfile(base_ms, per_image_ms, cold_ms, line if known else "", sizes_ms)


def _check_sizes(text: str, sizes: Sequence[int]) -> None:
    largest = largest_batch(EMULATED)
    if len({*sizes}) < len(sizes) or not all(1 <= size <= largest for size in sizes):
        raise SetUpError(f"--emulate {text!r}: give each batch size once, from 1 to {largest}.")


@dataclass(frozen=True)
class Wanted:
    """Servers to start, by name; the emulated one's service time, and which is behind the gateway, if any."""

    servers: tuple[str, ...]
    profile: EmulationProfile | None = None
    upstream: str = ""

    @property
    def engines(self) -> tuple[str, ...]:
        """Those that are tritonservers and compute."""
        return tuple(name for name in (*TRITON_PORTS, COMPILED) if name in self.servers and name != EMULATED)

    @property
    def exported(self) -> tuple[str, ...]:
        """Those of them that run the model's ONNX file."""
        return tuple(name for name in self.engines if name not in PYTORCH_ENGINES)


def wanted(options: argparse.Namespace) -> Wanted:
    """What `--only` and `--emulate` ask for; SetUpError where one lacks the other, or is not of --precision.

    A gateway brings its upstream with it.
    """
    servers = options.only or (DEFAULT if options.emulate is None else (EMULATED,))
    check_precision(options.precision, servers)
    upstream = ""
    if GATEWAY in servers:
        upstream = ONNX if options.emulate is None or ONNX in servers else EMULATED
        servers = tuple(dict.fromkeys((*servers, upstream)))
    if options.emulate is None:
        if EMULATED in servers:
            raise SetUpError("--only emulated needs a service time: give --emulate a100, or see --help.")
        return Wanted(servers, None, upstream)
    if EMULATED not in servers:
        raise SetUpError(
            f"--emulate {options.emulate} has no server to configure: name emulated in --only, or leave"
            f" it out."
        )
    return Wanted(servers, profile_of(options.emulate), upstream)


def check_precision(precision: str, servers: tuple[str, ...]) -> None:
    """SetUpError where servers would compute in something else, or none of them in this."""
    if precision == FP32:
        return
    ours = ", ".join(IN_PYTORCH)
    if others := [name for name in servers if name in ALWAYS_FP32]:
        raise SetUpError(
            f"--precision {precision}: {' and '.join(others)} can only compute in {FP32}: leave "
            f"{'them' if others[1:] else 'it'} out, and use some of {ours}."
        )
    if not {*IN_PYTORCH} & {*servers}:
        raise SetUpError(f"--precision {precision} applies to {ours}: use one of them, or leave it out.")


def patience_s(options: argparse.Namespace, chosen: Wanted) -> float:
    """How long the servers may take to be ready, in seconds."""
    return float(options.start_timeout_s or (BUILD_S if {TRT, INDUCTOR} & {*chosen.servers} else START_S))


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line of `up`."""
    parser = argparse.ArgumentParser(
        prog="inferswarm up",
        description="Start the PyTorch service and tritonservers on this machine; they run until Ctrl-C.",
    )
    add_model_options(parser)
    _add_server_options(parser)
    _add_triton_options(parser)
    _add_own_options(parser)
    options = parser.parse_args(argv)
    if options.queue_delay_us < 0:
        parser.error("--queue-delay-us must be at least 0 microseconds")
    if options.model_control and not os.environ.get(VARIABLE):
        parser.error(
            f"--model-control takes its secret from the environment: {VARIABLE}=control=$(openssl rand -hex "
            "32), and set the same for the study"
        )
    if options.instances < 1:
        parser.error("--instances must be a whole number, at least 1")
    if options.start_timeout_s is not None and not options.start_timeout_s > 0:
        parser.error("--start-timeout-s must be more than 0 seconds")
    return options


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        type=_names,
        metavar="NAME,...",
        help=f"start some of {', '.join(SERVERS)} (default: {', '.join(DEFAULT)}; with --emulate: "
        f"{EMULATED}); {COMPILED} is OpenVINO on the CPU, TensorRT on a GPU; {TORCH} is the service's model "
        f"behind Triton, {INDUCTOR} the same with torch.compile; {GATEWAY} is in front of "
        f"{ONNX}, or of {EMULATED} with --emulate, and starts it",
    )
    parser.add_argument(
        "--emulate",
        metavar="PROFILE",
        help=f"start a tritonserver whose model only sleeps: {FORMS}",
    )
    parser.add_argument(
        "--device",
        choices=DEVICES,
        default=DEVICES[0],
        help="the device that they compute on (default: CUDA if there is a GPU, and onnxruntime-gpu if"
        " needed, "
        "else the CPU)",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=FP32,
        help=f"what {', '.join(IN_PYTORCH)} compute in (default: %(default)s)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")


def _add_triton_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--payloads",
        type=_payloads,
        default=(FP32,),
        metavar="NAME,...",
        help=f"let tritonservers accept {', '.join(PAYLOADS)}, or some of these (default: {FP32})",
    )
    parser.add_argument(
        "--queue-delay-us",
        type=int,
        default=10_000,
        help="how long tritonserver lets a request wait for a batch (default: %(default)s)",
    )
    parser.add_argument(
        "--instances",
        type=int,
        default=1,
        help="how many executions a Triton model can run at once (default: %(default)s)",
    )
    parser.add_argument(
        "--model-control",
        action="store_true",
        help=f"let clients that send the secret in {VARIABLE} (NAME=VALUE in the environment) load"
        f" models, as "
        "studies do that vary a queue delay or instances (default: nobody)",
    )
    parser.add_argument(
        "--trace-dir",
        type=Path,
        metavar="DIR",
        help="have each tritonserver write the times of every request to files there (default: no tracing)",
    )
    parser.add_argument(
        "--spans-url",
        default="",
        metavar="URL",
        help="have each tritonserver send spans of requests with a traceparent there, as"
        " http://collector:4318/v1/traces, in OTLP; not with --trace-dir (default: nowhere)",
    )


def _add_own_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-dir",
        type=Path,
        help="where each server logs (default: a folder of this process in the cache)",
    )
    parser.add_argument(
        "--start-timeout-s",
        type=float,
        help=f"give up after this (default: {START_S:.0f}; with TensorRT or inductor, which build first, "
        f"{BUILD_S:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines, for programs")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when standard input ends")


def _names(text: str) -> tuple[str, ...]:
    return _some_of((*SERVERS, COMPILED), text)


def _payloads(text: str) -> tuple[str, ...]:
    # A tritonserver's own model takes float32 in any case.
    return tuple(dict.fromkeys((FP32, *_some_of(PAYLOADS, text))))


def _some_of(known: tuple[str, ...], text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"takes some of {','.join(known)}, not {text!r}")
    return names
