"""How one set-up is run: its link, servers and front, then the study with its disturbances."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import requests
from PIL import Image

from benchmarks.drive import LOCUST
from benchmarks.planting.found import Found, found_in, missing
from benchmarks.planting.processes import BURN, address_of, all_servers, process
from benchmarks.planting.setup import HERE, Behind, Setup
from swarm.links.network import Network
from tests.locustfiles.console import ROOT

STUDY_S, MORE_S = 120, 30
"""How long a study may take, and how much longer for each further level."""
STRANGER_AFTER_S = 3.0
EVERYWHERE = "0.0.0.0"


def run(setup: Setup, folder: Path) -> list[Found]:
    """Run one set-up in an empty folder and read what the report names as its limit, at each level."""
    with ExitStack() as stack:
        network, host = None, HERE
        if setup.link:
            network = stack.enter_context(Network(["client"], [setup.link], servers_here=True))
            host = network.address("client", setup.link)
        target = target_of(setup, host, folder, stack)
        command = study_command(setup, target, folder)
        if setup.client_in:
            command = [*stack.enter_context(setup.client_in()), *command]
        command = network.command("client", command) if network else command
        study = stack.enter_context(running(command, setup, folder))
        for _ in range(setup.hogs):
            stack.enter_context(process(sys.executable, "-c", BURN))
        if setup.stranger:
            disturb(setup, target, study, folder)
        patience_s = STUDY_S + MORE_S * len(setup.more)
        try:
            study.wait(patience_s)
        except subprocess.TimeoutExpired:
            return missing(setup, folder, f"the study still ran after {patience_s} s")
        return found_in(setup, folder)


def target_of(setup: Setup, host: str, folder: Path, stack: ExitStack) -> str:
    """Start servers and front; where the client reaches the endpoint."""
    listen = EVERYWHERE if setup.link else HERE
    # Behind a front the servers are asked by it alone, from this host.
    ready = all_servers(setup, HERE if setup.front else listen, stack)
    if not setup.front:
        return address_of(setup, ready[0], host)
    behind = Behind(tuple(address_of(setup, one, HERE) for one in ready), listen, folder)
    return f"{host}:{stack.enter_context(setup.front(behind))}"


def study_command(setup: Setup, target: str, folder: Path) -> list[str]:
    """The headless study of one endpoint."""
    command = [LOCUST, "-f", "benchmarks/studies/planted.py", "--headless"]
    pictures = ["--images", pictures_of(folder, setup.picture_px)] if setup.picture_px else []
    results = ["--results-dir", str(folder / "results")]
    return [*command, *endpoint_options(setup, target, folder), *results, *pictures, *setup.study]


def endpoint_options(setup: Setup, target: str, folder: Path) -> list[str]:
    """The options that name the endpoint, by its URL or by a file."""
    if setup.file:
        place = folder / "endpoint.toml"
        place.write_text(setup.file.replace("{address}", target))
        return ["--endpoint", f"{setup.endpoint}={place}"]
    option = "--pytorch-url" if setup.endpoint == "pytorch-http" else f"--{setup.endpoint}-url"
    return [option, target]


@contextmanager
def running(command: Sequence[str], setup: Setup, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The study, in one session with the hogs: the kernel shares cores between sessions first."""
    levels = ",".join(map(str, setup.truths))
    told = {"PLANTED_USERS": levels, "PLANTED_BATCH": setup.batch, "PLANTED_FAULT": setup.fault}
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


def pictures_of(folder: Path, width: int) -> str:
    """A folder with one large photograph-like picture: smooth, so that it is few bytes and many pixels."""
    place = folder / "pictures"
    place.mkdir()
    ramp = np.linspace(0, 255, width, dtype=np.uint8)
    pixels = np.stack([np.tile(ramp, (width * 4 // 5, 1))] * 3, axis=-1)
    Image.fromarray(pixels).save(place / "large.jpg", quality=85)
    return str(place)
