"""System shared memory of a Triton on this host: a region of inputs, written, registered and removed.

Inputs only: answers come over the wire. The server maps what it is told of by name, so it must see this
host's /dev/shm, and may refuse: embedded servers ask for a secret, and others for --allow-client-shm=true.
"""

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from users.codecs.v2 import REGIONS, SharedInputs
from users.endpoint import Endpoint
from users.errors import RequestError, TargetError, translated
from users.inputs.images import ImageSet
from users.inputs.pause import give_way
from users.transport.admin_connection import PATIENCE_S
from users.triton.api import OverGrpc, OverHttp, open_api
from users.triton.model_control import SECRET

OWN = "inferswarm-"
"""What names begin with; the number of the process that made them follows, and then `-`."""
FIX = "or leave --shared-memory out"
PIECE_ROWS = 16


@dataclass(frozen=True)
class Region:
    """One that this process has made: for the requests of one endpoint, under the same name everywhere."""

    endpoint: Endpoint
    name: str

    @property
    def path(self) -> Path:
        """The file behind it."""
        return REGIONS / self.name

    def close(self) -> None:
        """Unregister it, as far as its server still answers, and remove it."""
        try:
            with suppress(TargetError), opened(self.endpoint) as api:
                api.unregister(self.name)
        finally:
            self.path.unlink(missing_ok=True)


def share(endpoint: Endpoint, inputs: SharedInputs, images: ImageSet) -> Region:
    """The region of an endpoint's inputs, written and registered. Raises TargetError with the fix."""
    made = Region(endpoint, inputs.region)
    try:
        write(made.path, endpoint, inputs, images)
        register(made, inputs.size)
    except BaseException:
        made.path.unlink(missing_ok=True)
        raise
    return made


def write(path: Path, endpoint: Endpoint, inputs: SharedInputs, images: ImageSet) -> None:
    """Every item of every input at its place. Raises TargetError where there is no room."""
    contract, count = endpoint.contract, inputs.count
    try:
        with open(path, "xb", opener=functools.partial(os.open, mode=0o600)) as file:
            # All of it now: a page that cannot be had later would end the process.
            os.posix_fallocate(file.fileno(), 0, inputs.size)
            for one in contract.inputs:
                file.seek(inputs.place(one, (0,)).offset)
                for first in range(0, inputs.rows, PIECE_ROWS):
                    places = range(first, min(first + PIECE_ROWS, inputs.rows))
                    tensor = images.tensor(one, contract, [place % count for place in places])
                    file.write(tensor.tobytes())
                    give_way()
    except OSError as error:
        need_mb = -(-inputs.size // 1_000_000)
        raise TargetError(
            f"needs {need_mb:,} MB of shared memory, which {REGIONS} does not give ({error.strerror});"
            f" enlarge it (`mount -o remount,size=… {REGIONS}`, or --shm-size of a container), lower"
            f" --pool-mb, {FIX}"
        ) from error


def register(made: Region, size: int) -> None:
    """Have the server map it; regions of processes that have ended are given back. Raises TargetError."""
    with opened(made.endpoint) as api:
        for name in api.regions():
            if is_left_over(name):
                api.unregister(name)
        api.register(made.name, f"/{made.name}", size)


@contextmanager
def opened(endpoint: Endpoint) -> Iterator[OverHttp | OverGrpc]:
    """The server's API, with the secret for what changes it. Raises TargetError."""
    try:
        with translated(), open_api(endpoint, PATIENCE_S, control=True) as api:
            yield api
    except RequestError as error:
        said = error.detail
        raise TargetError(f"takes no shared memory of this host ({said}); {fix_of(said)}") from error


def fix_of(said: str) -> str:
    """What to do about a refusal, by the server's words."""
    if "restricted" in said:
        return f"{SECRET}, {FIX}"
    if "open shared memory" in said or "shm_open" in said:
        where = f"on this host, as this user or root, with this host's {REGIONS} (a container: --ipc=host)"
        return f"run it {where}, {FIX}"
    return f"start tritonserver with --allow-client-shm=true where it has that option, {FIX}"


def remove_left_over() -> None:
    """Remove the regions of processes that have ended."""
    for path in REGIONS.glob(f"{OWN}*"):
        if is_left_over(path.name):
            with suppress(OSError):  # another user's
                path.unlink()


def is_left_over(name: str, processes: Path = Path("/proc")) -> bool:
    """Whether a region is one of a process of this host that has ended."""
    pid = name.removeprefix(OWN).partition("-")[0]
    return name.startswith(OWN) and pid.isdigit() and not (processes / pid).exists()
