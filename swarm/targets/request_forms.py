"""Compressed requests, and inputs in shared memory: whether servers take them, and the regions of a run."""

import functools
import os
import secrets
from collections.abc import Sequence

from swarm.errors import RunFailedError, UsageError
from swarm.plan.cell import Cell
from swarm.targets.cold_start import LONGEST_S
from users.backends.registry import codec_of
from users.codecs.compression import Compressed
from users.codecs.v2 import SharedInputs
from users.endpoint import Endpoint
from users.errors import RequestError, TargetError
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.refusals import ask_again
from users.transport.transports import client
from users.triton.shared_memory import OWN, Region, remove_left_over, share


class RequestForms:
    """What of a study's servers is asked in another form than usual.

    `images` are what requests are made of. A run's regions are there from `apply` until that of a cell that
    does not run at the same time.
    """

    def __init__(self) -> None:
        self._regions: dict[str, Region] = {}
        self._together = ""

    def check(self, cells: Sequence[Cell], images: ImageSet) -> None:
        """Each server takes what its cells send, tried with one request. Raises UsageError."""
        compressed = {(cell.endpoint.name, cell.compression): cell.endpoint for cell in cells}
        for (_, compression), endpoint in compressed.items():
            if compression:
                check_compressed(endpoint, compression, images)
        remove_left_over()
        for endpoint in {cell.endpoint.name: cell.endpoint for cell in cells if cell.shared_memory}.values():
            try:
                shared(endpoint, "check", images, 1).close()
            except TargetError as error:
                raise UsageError(f"--shared-memory: {endpoint.name} {endpoint.shown}: {error}") from error

    def apply(self, cell: Cell, images: ImageSet) -> None:
        """The cell's inputs lie in its region, and nothing of earlier runs does. Raises RunFailedError."""
        if not cell.together or cell.together != self._together:
            self.close()
        self._together = cell.together
        if not cell.shared_memory or cell.name in self._regions:
            return
        try:
            self._regions[cell.name] = shared(cell.endpoint, cell.name, images, cell.batch)
        except TargetError as error:
            raise RunFailedError(f"--shared-memory: {error}") from error

    def close(self) -> None:
        """Remove all regions."""
        while self._regions:
            self._regions.popitem()[1].close()


@functools.cache
def prefix() -> str:
    """What the names of this process's regions begin with; no other process has the same."""
    return f"{OWN}{os.getpid()}-{secrets.token_hex(4)}"


def shared(endpoint: Endpoint, cell: str, images: ImageSet, most: int) -> Region:
    """The region of a cell's inputs, whose requests have `most` items at most. Raises TargetError."""
    known = codec_of(endpoint).endpoint
    return share(known, SharedInputs.of(known.contract, prefix(), cell, images, most), images)


def check_compressed(endpoint: Endpoint, compression: str, images: ImageSet) -> None:
    """A compressed request has an answer. Raises UsageError."""
    codec = Compressed(codec_of(endpoint), compression)
    try:
        with client(codec, LONGEST_S) as asking:
            prepared = codec.prepare(images, (0,))
            reply = ask_again(endpoint.address, functools.partial(asking.send, prepared))
            check_form(reply, 1, codec.endpoint.contract)
    except RequestError as error:
        raise UsageError(
            f"--compression {compression}: {endpoint.name} {endpoint.shown} does not take a request that is"
            f" compressed so ({error.whole}); leave it out, or exclude the endpoint with --endpoints"
        ) from error
