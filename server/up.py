"""`python -m server up`: the PyTorch service and two tritonservers here, until nobody wants them."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from server import logs, shared_memory
from server.errors import SetUpError
from server.export import current_stamp
from server.fleet import Fleet
from server.net import get
from server.plans import TRITON_PORTS, Hosting, pytorch_plan, triton_plan
from server.spec import ModelSpec, add_model_options, model_of
from server.turn import turn_to_start
from server.voice import Stop, Voice
from server.wheel import Wheel, find_wheel

SERVERS = ("pytorch", *TRITON_PORTS)
PAUSE_S = 0.05


def main(argv: list[str]) -> int:
    """Start the servers and keep them; 0 when asked to stop, 1 when all have died, 2 if they cannot start."""
    options = parse(argv)
    voice = Voice(options.json)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        run(options, voice)
    except Stop:
        return 0
    except SetUpError as error:
        voice.error(str(error), error.log_tail)
        return 2
    return 1


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line of `up`."""
    parser = argparse.ArgumentParser(prog="python -m server up", description=__doc__)
    add_model_options(parser)
    parser.add_argument(
        "--only",
        type=_names,
        default=SERVERS,
        metavar="NAME,...",
        help=f"start some of {', '.join(SERVERS)} (default: all)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--queue-delay-us",
        type=int,
        default=10_000,
        help="how long tritonserver lets a request wait for others (default: %(default)s)",
    )
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
    options = parser.parse_args(argv)
    if options.queue_delay_us < 0:
        parser.error("--queue-delay-us takes microseconds, 0 or more")
    return options


def run(options: argparse.Namespace, voice: Voice) -> None:
    """Start what the options name, announce it, and return only when every server has died."""
    wheel = find_wheel() if set(TRITON_PORTS) & set(options.only) else None
    shared_memory.remove_orphans()
    logs.remove_old()
    pause = _pause(options.until_stdin_closes)
    # The fleet ends before the turn: servers that fail to start are gone when the next `up` chooses ports.
    with ExitStack() as turn, Fleet(options.log_dir.resolve(), voice, pause) as fleet:
        turn.enter_context(turn_to_start(voice, pause, options.start_timeout_s))
        about = start(options, fleet, wheel, voice)
        turn.close()
        voice.ready(about, {name: fleet.endpoints[name] for name in SERVERS if name in fleet.endpoints})
        fleet.watch()


def start(options: argparse.Namespace, fleet: Fleet, wheel: Wheel | None, voice: Voice) -> dict[str, str]:
    """Start what the options name and wait for it; what all of it holds: model, weights and their hash."""
    spec = model_of(options)
    hosting = Hosting(options.host, options.queue_delay_us)
    hashes = set()
    if "pytorch" in options.only:
        fleet.start(pytorch_plan(spec, hosting))
    if wheel:
        weights_sha256 = str(exported(spec, fleet, voice)["weights_sha256"])
        hashes.add(weights_sha256)
        for name in TRITON_PORTS:
            if name in options.only:
                fleet.start(triton_plan(name, spec, wheel, hosting, weights_sha256))
    fleet.wait_until_ready(options.start_timeout_s)
    if "pytorch" in options.only:
        hashes.add(service_weights(fleet.endpoints["pytorch"]["url"]))
    if len(hashes) > 1:
        raise SetUpError("PyTorch and ONNX hold different weights: run `python -m server export --force`.")
    return {"model": spec.name, "weights": spec.weights, "weights_sha256": hashes.pop()}


def exported(spec: ModelSpec, fleet: Fleet, voice: Voice) -> dict[str, object]:
    """The stamp of the current ONNX file, which is exported first where need be."""
    if stamp := current_stamp(spec):
        return stamp
    voice.progress(f"exporting {spec.name} with weights {spec.weights} to ONNX, some 15 seconds...")
    fleet.run("export", [sys.executable, "-m", "server", "export", *spec.arguments()], os.environ)
    stamp = current_stamp(spec)
    if stamp is None:
        raise SetUpError(f"{spec.name} changed while it was exported: start again.")
    return stamp


def service_weights(url: str) -> str:
    """The hash of the weights that the PyTorch service says it holds."""
    reply = get(url.removeprefix("http://"), "/readyz")
    if reply is None:
        raise SetUpError("the PyTorch service stopped answering as soon as it was ready: see its log.")
    return str(json.loads(reply[1])["weights_sha256"])


def _names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    unknown = [name for name in names if name not in SERVERS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"takes some of {','.join(SERVERS)}, not {text!r}")
    return names


def _pause(until_stdin_closes: bool) -> Callable[[], None]:
    def pause() -> None:
        if not until_stdin_closes:
            time.sleep(PAUSE_S)
        elif select.select([0], [], [], PAUSE_S)[0] and not os.read(0, 4096):
            raise Stop

    return pause


def _stop(*_: object) -> None:
    raise Stop
