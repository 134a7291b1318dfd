"""Is the planted cause named? Fourteen set-ups on real servers, each with one thing in its way.

python -m benchmarks.planted [PART OF A NAME …]     three times, or only the set-ups with such names
"""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import requests
from PIL import Image

from benchmarks.drive import LOCUST
from swarm.links.network import Network
from swarm.links.profiles import LinkProfile
from tests.locustfiles.console import ROOT

TIMES = 3
STUDY_S = 120
STRANGER_AFTER_S = 3.0
NO_VERDICT, LOG_LINES = "no verdict", 20
BURN = "while True: pass"
LONG_MS, WIDE_MBIT, LOSS_PCT = 14, 210.0, 0.1
"""The published study's path as fitted, with a little more loss: 14 ms, 210 Mbit/s."""

HOGS_A_CORE = 3
"""A fair scheduler then leaves a busy client a quarter of each core."""


@dataclass(frozen=True)
class Setup:
    """One cell on real servers; `truth` is the limit that must be named.

    `server`: options of `python -m server up`. `endpoint`: which of its endpoints. `study`: options of the
    study. `fault`: of the client's own process. `hogs`: processes that burn a core each. `stranger`: images
    in a request that another client sends into the measure phase. `picture_px`: the pictures' width, 0 for
    the default ones.
    """

    name: str
    truth: str
    endpoint: str
    server: tuple[str, ...]
    users: int = 1
    batch: int = 1
    study: tuple[str, ...] = ()
    fault: str = ""
    hogs: int = 0
    stranger: int = 0
    picture_px: int = 0
    link: LinkProfile | None = field(default=None)


def emulated(profile: str, *options: str, delay_us: int = 0) -> tuple[str, ...]:
    """A tritonserver whose model sleeps."""
    return ("--emulate", profile, "--queue-delay-us", str(delay_us), *options)


LOSSY = LinkProfile(
    "lossy", one_way_ms=LONG_MS / 2, mbit_per_s=WIDE_MBIT, loss_pct=LOSS_PCT, queue_bytes=1_000_000
)
NARROW = LinkProfile("narrow", one_way_ms=5, mbit_per_s=40.0, queue_bytes=500_000)

SETUPS = (
    Setup("CPU burnt in the client", "client-cpu", "emulated-http", emulated("5+0"), users=8, fault="cpu"),
    Setup(
        "every core taken by others", "client-cpu", "emulated-http", emulated("5+0"), users=8,
        hogs=HOGS_A_CORE * len(os.sched_getaffinity(0)),
    ),
    Setup("event loop blocked", "client-loop", "emulated-http", emulated("5+0"), users=8, fault="loop"),
    Setup(
        "one gRPC channel for 16 users, lossy long path", "connections", "emulated-grpc", emulated("4+0"),
        users=16, study=("--channels", "shared"), link=LOSSY,
    ),
    Setup("one HTTP user, lossy long path", "connections", "emulated-http", emulated("4+0"), link=LOSSY),
    Setup("link of 40 Mbit/s, rate unknown", "link", "emulated-http", emulated("4+0"), users=8, link=NARROW),
    Setup(
        "link of 40 Mbit/s, rate known", "link", "emulated-grpc", emulated("4+0"), users=8,
        study=("--link-mbit", "40"), link=NARROW,
    ),
    Setup("slow model", "server-compute", "emulated-grpc", emulated("120+0")),
    Setup(
        "slow decode in the service", "server-compute", "pytorch-http", ("--only", "pytorch"),
        picture_px=6000,
    ),
    Setup(
        "one slow instance, many users", "server-queue", "emulated-http", emulated("60+0"), users=8,
        batch=32,
    ),
    Setup("long batching delay", "server-queue", "emulated-grpc", emulated("5+0", delay_us=250_000), users=2),
    Setup(
        "cold shape inside the window", "server-cold", "emulated-http", emulated("8+0/3000"), users=2,
        stranger=29,
    ),
    Setup("too few users", "offered-load", "emulated-grpc", emulated("20+0", "--instances", "4"), users=1),
    Setup("unloaded fast server", "offered-load", "emulated-http", emulated("1+0"), users=1),
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the set-ups; 0 where every verdict is the truth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of set-ups (default: all)")
    parser.add_argument("--times", type=int, default=TIMES, help="runs in a row (default: %(default)s)")
    options = parser.parse_args(argv)
    chosen = [
        setup for setup in SETUPS if not options.names or any(part in setup.name for part in options.names)
    ]
    wrong = 0
    for time_number in range(1, options.times + 1):
        print(f"run {time_number} of {options.times}", flush=True)
        for setup in chosen:
            limit = verdict(setup)
            right = limit["code"] == setup.truth
            wrong += not right
            mark = "" if right else "   WRONG"
            print(
                f"  {setup.name:<48}{setup.truth:<16}{limit['code']}{mark}\n      {limit['evidence']}",
                flush=True,
            )
    print(f"\n{'every cause was named' if chosen and not wrong else f'{wrong} verdicts were wrong'}")
    return 1 if wrong or not chosen else 0


def verdict(setup: Setup) -> dict[str, str]:
    """Run one set-up and read what the report names as its limit."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        network, host = None, "127.0.0.1"
        if setup.link:
            network = stack.enter_context(Network(["client"], [setup.link], servers_here=True))
            host = network.address("client", setup.link)
        ready = stack.enter_context(servers(setup, "0.0.0.0" if network else host))
        target = address_of(setup, ready, host)
        command = study_command(setup, target, folder)
        command = network.command("client", command) if network else command
        study = stack.enter_context(running(command, setup, folder))
        for _ in range(setup.hogs):
            stack.enter_context(process(sys.executable, "-c", BURN))
        if setup.stranger:
            disturb(setup, target, study, folder)
        try:
            study.wait(STUDY_S)
        except subprocess.TimeoutExpired:
            return no_verdict(folder, f"the study still ran after {STUDY_S} s")
        return limit_in(folder)


def study_command(setup: Setup, target: str, folder: Path) -> list[str]:
    """The headless study of one endpoint."""
    option = "--pytorch-url" if setup.endpoint == "pytorch-http" else f"--{setup.endpoint}-url"
    command = [LOCUST, "-f", "benchmarks/studies/planted.py", "--headless", option, target]
    pictures = ["--images", pictures_of(folder, setup.picture_px)] if setup.picture_px else []
    return [*command, "--results-dir", str(folder / "results"), *pictures, *setup.study]


def address_of(setup: Setup, ready: dict[str, Any], host: str) -> str:
    """Where the endpoint is, as the client reaches it."""
    backend, protocol = setup.endpoint.split("-")
    told = ready["endpoints"][backend]
    place = told["url"].removeprefix("http://") if backend == "pytorch" else told[protocol]
    return f"{host}:{place.rpartition(':')[2]}"


@contextmanager
def servers(setup: Setup, host: str) -> Iterator[dict[str, Any]]:
    """The set-up's servers and what they said when they were ready."""
    command = [sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes", "--host", host]
    with subprocess.Popen(
        [*command, *setup.server], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        events = (json.loads(line) for line in started.stdout)
        ready: dict[str, Any] = next((event for event in events if event["event"] in ("ready", "error")), {})
        if "endpoints" not in ready:
            raise SystemExit(f"{setup.name}: {ready.get('text', 'the servers ended at once')}")
        yield ready
        # Leaving the block closes its standard input, at which they stop.


@contextmanager
def process(*command: str) -> Iterator[None]:
    """A process that is killed at the end."""
    with subprocess.Popen(command) as started:
        try:
            yield
        finally:
            started.kill()


@contextmanager
def running(command: Sequence[str], setup: Setup, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The study, in one session with the hogs: the kernel shares cores between sessions first."""
    told = {"PLANTED_USERS": setup.users, "PLANTED_BATCH": setup.batch, "PLANTED_FAULT": setup.fault}
    environ = {**os.environ, **{name: str(value) for name, value in told.items()}}
    with (
        (folder / "study.log").open("w") as log,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environ
        ) as started,
    ):
        try:
            yield started
        finally:
            started.kill()


def disturb(setup: Setup, target: str, study: subprocess.Popen[bytes], folder: Path) -> None:
    """In the middle of the measure phase, send one request of a size that nobody has sent before."""
    deadline = time.monotonic() + STUDY_S
    while study.poll() is None and '"phase":"measure"' not in ledger_text(folder):
        if time.monotonic() > deadline:
            return  # the wait for the study's end says so
        time.sleep(0.05)
    time.sleep(STRANGER_AFTER_S)
    data = np.zeros((setup.stranger, 3, 224, 224), np.float32)
    tensor = {
        "name": "input",
        "datatype": "FP32",
        "shape": data.shape,
        "parameters": {"binary_data_size": data.nbytes},
    }
    head = json.dumps({"inputs": [tensor]}).encode()
    requests.post(
        f"http://{target}/v2/models/emulated/infer", head + data.tobytes(), timeout=60,
        headers={"Inference-Header-Content-Length": str(len(head))},
    ).raise_for_status()  # fmt: skip


def ledger_text(folder: Path) -> str:
    """The ledger so far."""
    return "".join(path.read_text() for path in folder.glob("results/*/ledger.jsonl"))


def limit_in(folder: Path) -> dict[str, str]:
    """The limit of the study's one run, or that there is none."""
    found = list(folder.glob("results/*/study.json"))
    runs = json.loads(found[0].read_text())["runs"] if found else []
    limit: dict[str, str] | None = runs[0]["limit"] if runs else None
    return limit or no_verdict(folder, "the study left nothing")


def no_verdict(folder: Path, why: str) -> dict[str, str]:
    """What stands for a limit where there is none, with the end of what the study printed."""
    lines = (folder / "study.log").read_text(errors="replace").splitlines()
    said = "".join(f"\n      | {line}" for line in lines[-LOG_LINES:])
    return {"code": NO_VERDICT, "evidence": f"{why}; it printed at last:{said}"}


def pictures_of(folder: Path, width: int) -> str:
    """A folder with one large photograph-like picture: smooth, so that it is few bytes and many pixels."""
    place = folder / "pictures"
    place.mkdir()
    ramp = np.linspace(0, 255, width, dtype=np.uint8)
    pixels = np.stack([np.tile(ramp, (width * 4 // 5, 1))] * 3, axis=-1)
    Image.fromarray(pixels).save(place / "large.jpg", quality=85)
    return str(place)


if __name__ == "__main__":
    sys.exit(main())
