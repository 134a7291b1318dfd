"""The command line of `up`, and which servers it asks for."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

from server.embedded.plans import GATEWAY, ONNX, TRITON_PORTS
from server.errors import SetUpError
from server.hardware.device import COMPILED, DEVICES, TRT, Device
from server.spec import add_model_options
from server.triton.emulation import FORMS, EmulationProfile, profile_of
from server.triton.ensembles import FP32, PAYLOADS
from server.triton.model_control import VARIABLE

EMULATED = "emulated"
START_S, BUILD_S = 180.0, 900.0
SERVERS = ("pytorch", *TRITON_PORTS, GATEWAY)
DEFAULT = ("pytorch", ONNX, COMPILED)


@dataclass(frozen=True)
class Wanted:
    """The servers to start, by name, and the service time of the emulated one, if it is among them.

    `upstream`: which of them is behind the gateway, if that is among them.
    """

    servers: tuple[str, ...]
    profile: EmulationProfile | None = None
    upstream: str = ""

    @property
    def engines(self) -> tuple[str, ...]:
        """Those that are tritonservers and compute."""
        return tuple(name for name in (*TRITON_PORTS, COMPILED) if name in self.servers and name != EMULATED)


def wanted(options: argparse.Namespace) -> Wanted:
    """What `--only` and `--emulate` ask for; SetUpError where one lacks the other.

    A gateway brings its upstream with it.
    """
    servers = options.only or (DEFAULT if options.emulate is None else (EMULATED,))
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
            f"--emulate {options.emulate} has no server to set up: name emulated in --only, or leave it out."
        )
    return Wanted(servers, profile_of(options.emulate), upstream)


def patience_s(options: argparse.Namespace, chosen: Wanted) -> float:
    """How long the servers may take to be ready, in seconds."""
    return float(options.start_timeout_s or (BUILD_S if TRT in chosen.servers else START_S))


def on_device(chosen: Wanted, device: Device) -> Wanted:
    """What was chosen, with the device's engine in the compiled one's place; SetUpError if it lacks one."""
    return replace(chosen, servers=device.servers(chosen.servers))


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line of `up`."""
    parser = argparse.ArgumentParser(
        prog="python -m server up",
        description="Start the PyTorch service and tritonservers here, until nobody wants them.",
    )
    add_model_options(parser)
    _add_server_options(parser)
    _add_triton_options(parser)
    _add_own_options(parser)
    options = parser.parse_args(argv)
    if options.queue_delay_us < 0:
        parser.error("--queue-delay-us takes microseconds, 0 or more")
    if options.model_control and not os.environ.get(VARIABLE):
        parser.error(
            f"--model-control takes its secret from the environment: {VARIABLE}=control=$(openssl rand -hex "
            "32), and the same where the study runs"
        )
    if options.instances < 1:
        parser.error("--instances takes a whole number, 1 or more")
    if options.start_timeout_s is not None and not options.start_timeout_s > 0:
        parser.error("--start-timeout-s takes seconds, more than 0")
    return options


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        type=_names,
        metavar="NAME,...",
        help=f"start some of {', '.join(SERVERS)} (default: {', '.join(DEFAULT)}; with --emulate: "
        f"{EMULATED}); {COMPILED} is OpenVINO on the CPU, TensorRT on a GPU; {GATEWAY} stands before {ONNX}, "
        f"before {EMULATED} with --emulate, and brings it",
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
        help="what they compute on (default: CUDA where a GPU and onnxruntime-gpu are there, else the CPU)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")


def _add_triton_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--payloads",
        type=_payloads,
        default=(FP32,),
        metavar="NAME,...",
        help=f"have tritonservers take {', '.join(PAYLOADS)}, or some of these (default: {FP32})",
    )
    parser.add_argument(
        "--queue-delay-us",
        type=int,
        default=10_000,
        help="how long tritonserver lets a request wait for others (default: %(default)s)",
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
        help=f"let who sends the secret in {VARIABLE} (NAME=VALUE in the environment) load models, as "
        "studies do that vary a queue delay or instances (default: nobody)",
    )
    parser.add_argument(
        "--trace-dir",
        type=Path,
        metavar="DIR",
        help="have each tritonserver write the times of every request to files there (default: no tracing)",
    )


def _add_own_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-dir",
        type=Path,
        help="where each server logs (default: a folder of this process's in the cache)",
    )
    parser.add_argument(
        "--start-timeout-s",
        type=float,
        help=f"give up after this (default: {START_S:.0f}; with TensorRT, which builds first, {BUILD_S:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="speak in JSON lines, for programs")
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
