"""A study's folder, and the header with which its ledger begins: what the study ran on is in it."""

import itertools
import os
import platform
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from reports.ledger.ledger import FILE_NAME, VERSION, LedgerWriter
from swarm.clock import utc_now
from swarm.errors import UsageError
from swarm.hosts.facts import NET, PACKAGES, commit, packages, read, version
from swarm.hosts.host import ROOT
from swarm.options.model import Options
from swarm.plan.cell import PlannedRun
from swarm.plan.matrix import StudyDefinition
from swarm.redaction import RedactedLedger
from swarm.sampling.gpus import driver_version, find_nvml, gpu_names
from swarm.targets.servers import Servers
from users.backends.registry import FLOOR, backend_of, codec_of, facts_of
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

TOLD = (
    "started_ns",
    "loaded_ns",
    "compiled",
    "emulated",
    "provider",
    "precision",
    "upstream",
    "server_version",
)
"""What a ledger keeps of the description of embedded servers."""
SERVING = (
    "nvidia-pytriton",
    "onnxruntime",
    "onnxruntime-gpu",
    "openvino",
    "torch",
    "open_clip_torch",
    "fastapi",
)
"""Packages that embedded servers run on."""


def make_folder(folder: Path) -> None:
    """Make the folder if it is not there. Raises UsageError where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_make(folder, error) from error


def cannot_make(folder: Path, error: OSError) -> UsageError:
    """Why a folder for results cannot be had."""
    return UsageError(f"--results-dir: cannot make {folder} ({error.strerror}); name another")


def new_folder(parent: Path, name: str) -> Path:
    """`<parent>/<name>-<UTC time>/`, with a number where two studies start in the same second."""
    make_folder(parent)
    folder = base = parent / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    numbers = itertools.count(2)
    while True:
        try:
            folder.mkdir()
            # What servers and workers say is for their operator alone.
            (folder / "logs").mkdir(mode=0o700)
            return folder
        except FileExistsError:
            folder = base.with_name(f"{base.name}-{next(numbers)}")
        except OSError as error:
            raise cannot_make(folder, error) from error


def header(
    study: StudyDefinition,
    options: Options,
    command: Sequence[str],
    runs: Sequence[PlannedRun],
    images: ImageSet,
    servers: Servers,
) -> dict[str, Any]:
    """The first line of a ledger.

    `command` makes the study again.
    """
    ready, stated = servers.ready, servers.stated
    return {
        "kind": "header",
        "version": VERSION,
        "study": study.name,
        "title": study.title,
        "size": options.size,
        "started_utc": utc_now(),
        "plan": [run.to_record() for run in runs],
        "options": {**options.to_record(), "command": shlex.join(command)},
        "fingerprint": {**fingerprint(options.embedded), "targets": servers.targets},
        "images": {
            "count": len(images),
            "source": images.source,
            "jpeg_bytes_mean": fmean(map(len, images.jpegs)),
            "sha256": images.sha256,
        },
        "backends": {
            e.behind: asdict(FLOOR if e.floor_of else backend_of(e).facts) for e in servers.endpoints
        },
        "endpoints": {
            e.name: about(e, options, ready, stated.get(e.name, {}))
            | {"path": codec_of(e).path}
            | where(servers.here.get(e.name))
            for e in servers.endpoints
        },
    }


def about(
    endpoint: Endpoint, options: Options, ready: Mapping[str, Any], stated: Mapping[str, str]
) -> dict[str, Any]:
    """What a reader must know of an endpoint; `ready` and `stated` as of `Servers`."""
    held = {**stated, **ready}
    server = {**stated, **ready.get("endpoints", {}).get(endpoint.shares, {})}
    told = {name: server[name] for name in TOLD if server.get(name)}
    computes = facts_of(endpoint).computes
    return {
        "url": endpoint.shown,
        "model": endpoint.model or (held.get("model", "") if computes else endpoint.behind),
        "weights": held.get("weights", "unknown") if computes else "none",
        "embedded": options.embedded,
        **({"tls": True} if endpoint.tls else {}),
        **asked_how(endpoint),
        **({"floor_of": endpoint.floor_of} if endpoint.floor_of else told),
    }


def where(here: bool | None) -> dict[str, bool]:
    """Whether an endpoint's server runs on the master's machine; nothing where that is not known."""
    return {} if here is None else {"local": here}


def asked_how(endpoint: Endpoint) -> dict[str, Any]:
    """What a reader must know of how an endpoint is asked: what it takes, and what was guessed of it."""
    contract, settings = endpoint.contract, endpoint.settings
    told = {
        "codec": endpoint.codec,
        "codec_sha256": endpoint.codec_sha256,
        "server": endpoint.shares,
        "space": endpoint.space,
        "inputs": [f"{one.name} {one.dtype} {list(one.shape)} {one.role}" for one in contract.inputs],
        "prepare": contract.preparation.name if any(one.role == "picture" for one in contract.inputs) else "",
        "output": contract.output,
        "dimension": contract.dimension,
        "max_batch": contract.max_batch,
        "guesses": list(contract.guesses),
        "stands_for": endpoint.stands_for,
        "fetched_by_server": bool((settings.get("body") or {}).get("fetched_by_server")),
    }
    computes = {} if endpoint.computes is None else {"computes": endpoint.computes}
    return {name: value for name, value in told.items() if value} | computes


@contextmanager
def remove_if_refused(folder: Path) -> Iterator[None]:
    """Leave no folder of a study that cannot begin."""
    try:
        yield
    except UsageError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def open_ledger(folder: Path, head: Mapping[str, Any]) -> LedgerWriter:
    """A new ledger that begins with `head`. Raises UsageError where it cannot be written."""
    try:
        ledger = RedactedLedger(folder / FILE_NAME)
        ledger.write(head)
    except OSError as error:
        text = f"--results-dir: {folder} cannot be written ({error.strerror}); name another"
        raise UsageError(text) from error
    return ledger


def fingerprint(embedded: bool) -> dict[str, Any]:
    """Versions, processor, kernel, the commit, else inferswarm's version; what cannot be read is left out.

    The packages are those that generate load, and of embedded servers theirs.
    """
    own, nvml = commit(ROOT), find_nvml()
    facts = {
        "python": platform.python_version(),
        "packages": packages((*PACKAGES, *(SERVING if embedded else ()))),
        "system": platform.platform(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "gpus": gpu_names(nvml),
        "driver": driver_version(nvml),
        "tcp_congestion_control": read(NET / "tcp_congestion_control"),
        "git_commit": own,
        "version": "" if own else version(),
    }
    return {name: fact for name, fact in facts.items() if fact}


def cpu_model() -> str:
    """The processor's name."""
    for line in read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
