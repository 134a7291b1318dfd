"""The command line of `up`, and which servers it asks for."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from server import logs
from server.emulation import FORMS, Profile, profile_of
from server.errors import SetUpError
from server.plans import TRITON_PORTS
from server.spec import add_model_options

EMULATED = "emulated"
SERVERS = ("pytorch", *TRITON_PORTS)
REAL = tuple(name for name in SERVERS if name != EMULATED)


@dataclass(frozen=True)
class Wanted:
    """The servers to start, by name, and the service time of the emulated one, if it is among them."""

    servers: tuple[str, ...]
    profile: Profile | None = None

    @property
    def engines(self) -> tuple[str, ...]:
        """Those that are tritonservers and compute."""
        return tuple(name for name in TRITON_PORTS if name in self.servers and name in REAL)


def wanted(options: argparse.Namespace) -> Wanted:
    """What `--only` and `--emulate` ask for; SetUpError where one lacks the other."""
    if options.emulate is None:
        servers = options.only or REAL
        if EMULATED in servers:
            raise SetUpError("--only emulated needs a service time: give --emulate a100, or see --help.")
        return Wanted(servers)
    servers = options.only or (EMULATED,)
    if EMULATED not in servers:
        raise SetUpError(
            f"--emulate {options.emulate} has no server to set up: name emulated in --only, or leave it out."
        )
    return Wanted(servers, profile_of(options.emulate))


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line of `up`."""
    parser = argparse.ArgumentParser(
        prog="python -m server up",
        description="Start the PyTorch service and tritonservers here, until nobody wants them.",
    )
    add_model_options(parser)
    _add_server_options(parser)
    _add_own_options(parser)
    options = parser.parse_args(argv)
    if options.queue_delay_us < 0:
        parser.error("--queue-delay-us takes microseconds, 0 or more")
    if options.instances < 1:
        parser.error("--instances takes a whole number, 1 or more")
    return options


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--only",
        type=_names,
        metavar="NAME,...",
        help=f"start some of {', '.join(SERVERS)} (default: {', '.join(REAL)}; with --emulate: {EMULATED})",
    )
    parser.add_argument(
        "--emulate",
        metavar="PROFILE",
        help=f"start a tritonserver whose model only sleeps: {FORMS}",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
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
        "--trace-dir",
        type=Path,
        metavar="DIR",
        help="have each tritonserver write the times of every request to files there (default: no tracing)",
    )


def _add_own_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-dir",
        type=Path,
        default=logs.own_folder(),
        help="where each server logs (default: .cache/logs/ and our process's number)",
    )
    parser.add_argument(
        "--start-timeout-s", type=float, default=180.0, help="give up after this (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="speak in JSON lines, for programs")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop when standard input ends")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    unknown = [name for name in names if name not in SERVERS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"takes some of {','.join(SERVERS)}, not {text!r}")
    return names
