"""`inferswarm up`: the PyTorch service and tritonservers on this machine, until they are stopped."""

import argparse
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from server.cache import cache
from server.embedded import leftovers
from server.embedded.events import Events, StopRequested
from server.embedded.fleet import Fleet
from server.embedded.leftovers import Environments
from server.embedded.options import EMULATED, SERVERS, Wanted, parse, patience_s, wanted
from server.embedded.plans import (
    GATEWAY,
    TRITON_PORTS,
    Hosting,
    engine_parameters,
    gateway_plan,
    model_parameters,
    pytorch_plan,
    torch_parameters,
    triton_plan,
)
from server.errors import SetUpError
from server.hardware.device import Device, DeviceFacts, choose
from server.hardware.packages import check_servers
from server.hardware.probe import read_facts
from server.models.export import current_stamp
from server.net import is_loopback
from server.settings import Settings
from server.spec import ModelSpec, model_of
from server.triton.tritonserver import VARIABLE, Wheel, find_wheel, is_seen, secret

PAUSE_S = 0.05
OPEN = (
    "Anyone who can reach tritonserver on {host} can use it and read its metrics; it has "
    "no token: give --host 127.0.0.1, or restrict access to it."
)
SEEN = (
    f"Other users of this machine can read {VARIABLE} in tritonserver's command line, and so load models "
    "into it, which may contain code: the system does not allow the ptrace that would hide it."
)
OPEN_SERVICE = (
    "Anyone who can reach the service on {host} can use it and read its metrics: set INFERSWARM_TOKEN,"
    " or give "
    "--host 127.0.0.1."
)


def main(argv: list[str]) -> int:
    """Start the servers and keep them; 0 when asked to stop, 1 when all have died, 2 if they cannot start."""
    options = parse(argv)
    events = Events(options.json)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        run(options, events)
    except StopRequested:
        return 0
    except SetUpError as error:
        events.error(str(error), error.log_tail)
        return 2
    return 1


def run(options: argparse.Namespace, events: Events) -> None:
    """Start what the options name, announce it, and return only when every server has died."""
    chosen = wanted(options)
    if set(chosen.servers) != {EMULATED}:
        check_servers()
    wheel = find_wheel() if chosen.engines or chosen.profile else None
    device = find_device(options, chosen, events)
    # The device's engine in the compiled one's place.
    chosen = replace(chosen, servers=device.servers(chosen.servers))
    options.start_timeout_s = patience_s(options, chosen)
    leftovers.remove_orphaned_memory()
    if wheel:
        tritonservers, steps = len(set(chosen.servers) & set(TRITON_PORTS)), len(options.payloads) - 1
        leftovers.check_shared_memory(leftovers.needed_mb(tritonservers, options.instances, steps))
    leftovers.remove_old_logs()
    pause = _pause(options.until_stdin_closes)
    # The fleet ends before the lock: servers that fail to start are gone when the next `up` chooses ports.
    with ExitStack() as lock, ExitStack() as left:
        fleet = Fleet((options.log_dir or leftovers.log_folder()).resolve(), events, pause)
        lock.enter_context(start_lock(events, pause, options.start_timeout_s))
        environments = left.enter_context(Environments())
        left.enter_context(fleet)
        about = start(options, chosen, device, fleet, wheel, events)
        environments.note()
        lock.close()
        found = {name: fleet.endpoints[name] for name in SERVERS if name in fleet.endpoints}
        if any(is_seen(endpoint["pid"]) for endpoint in found.values()):
            events.progress(SEEN)
        events.ready({**about, "logs": str(fleet.log_dir)}, found, warnings(options.host, chosen, os.environ))
        fleet.watch()


@contextmanager
def start_lock(
    events: Events,
    pause: Callable[[], None],
    timeout_s: float,
    path: Path | None = None,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Lock out others who start servers, as ports are free till listened on. SetUpError after `timeout_s`."""
    path = path or cache("ports.lock")
    # The lock goes with the open file, however we end.
    with path.open("w") as file:
        deadline = now() + timeout_s
        if not _locked(file.fileno()):
            events.progress("waiting for another `inferswarm up` to finish starting...")
        while not _locked(file.fileno()):
            if now() > deadline:
                raise SetUpError(
                    f"another `inferswarm up` has been starting for more than {timeout_s:.0f} s: "
                    "stop it, or wait longer with --start-timeout-s."
                )
            pause()
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def warnings(host: str, chosen: Wanted, environ: Mapping[str, str]) -> list[str]:
    """What is open to whom, a sentence for each kind of server."""
    if is_loopback(host):
        return []
    services = {"pytorch", GATEWAY} & set(chosen.servers)
    is_open = {
        OPEN: set(chosen.servers) - services,
        OPEN_SERVICE: services and not Settings.from_env(environ).token,
    }
    return [text.format(host=host) for text, whether in is_open.items() if whether]


def find_device(options: argparse.Namespace, chosen: Wanted, events: Events) -> Device:
    """What the chosen servers compute on, which is announced; SetUpError where a GPU cannot be used."""
    if not chosen.engines and "pytorch" not in chosen.servers:
        return Device()
    facts = DeviceFacts() if options.device == "cpu" else read_facts()
    device = choose(options.device, facts, bool(chosen.exported))
    events.progress(f"computing on {device.name}: {device.why}")
    return device


def start(
    options: argparse.Namespace,
    chosen: Wanted,
    device: Device,
    fleet: Fleet,
    wheel: Wheel | None,
    events: Events,
) -> dict[str, str]:
    """Start what was chosen and wait for it; what all that computes holds: model, weights and their hash."""
    spec = model_of(options)
    hosting = Hosting(
        host=options.host,
        queue_delay_us=options.queue_delay_us,
        instances=options.instances,
        trace_dir=options.trace_dir and options.trace_dir.resolve(),
        spans_url=options.spans_url,
        payloads=options.payloads,
        device=device,
        precision=options.precision,
        model_control=options.model_control,
        secret=secret(os.environ),
    )
    if "pytorch" in chosen.servers:
        fleet.start(pytorch_plan(spec, hosting))
    hashes = set()
    if wheel:
        torch = (name for name in chosen.engines if name not in chosen.exported)
        parameters = {name: torch_parameters(name, spec, hosting) for name in torch}
        if chosen.exported:
            weights_sha256 = str(exported(spec, fleet, events)["weights_sha256"])
            hashes.add(weights_sha256)
            given = model_parameters(spec, weights_sha256)
            parameters |= {name: engine_parameters(name, given, device) for name in chosen.exported}
        if chosen.profile:
            parameters[EMULATED] = chosen.profile.parameters()
        plans = {name: triton_plan(name, given, wheel, hosting) for name, given in parameters.items()}
        if GATEWAY in chosen.servers:
            plans[GATEWAY] = gateway_plan(chosen.upstream, plans[chosen.upstream].endpoint["grpc"], hosting)
        for plan in plans.values():
            fleet.start(plan)
    fleet.wait_until_ready(options.start_timeout_s)
    hashes |= {one["weights_sha256"] for one in fleet.endpoints.values() if one.get("weights_sha256")}
    if len(hashes) > 1:
        raise SetUpError("these servers hold different weights: run `inferswarm export --force`.")
    if not chosen.engines and not hashes:
        return {"model": EMULATED, "weights": "none (emulated)", "weights_sha256": ""}
    about = {"model": spec.name, "weights": spec.weights, "weights_sha256": "".join(hashes)}
    return {**about, "provider": device.provider} if chosen.exported else about


def exported(spec: ModelSpec, fleet: Fleet, events: Events) -> dict[str, object]:
    """The stamp of the current ONNX file, which is exported first where need be."""
    if stamp := current_stamp(spec):
        return stamp
    events.progress(f"exporting {spec.name} with weights {spec.weights} to ONNX, about 15 seconds...")
    fleet.run("export", [sys.executable, "-m", "server", "export", *spec.arguments()], os.environ)
    stamp = current_stamp(spec)
    if stamp is None:
        raise SetUpError(f"{spec.name} changed while it was exported: start again.")
    return stamp


def _pause(until_stdin_closes: bool) -> Callable[[], None]:
    def pause() -> None:
        if not until_stdin_closes:
            time.sleep(PAUSE_S)
        elif select.select([0], [], [], PAUSE_S)[0] and not os.read(0, 4096):
            raise StopRequested

    return pause


def _stop(*_: object) -> None:
    raise StopRequested
