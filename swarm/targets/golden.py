"""Golden embeddings, by space: what the right answer is, from a space's first endpoint or from a file."""

import functools
import zipfile
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from swarm.errors import UsageError
from users.backends.registry import codec_of, facts_of
from users.endpoint import Endpoint
from users.errors import RequestError
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.refusals import ask_again, passes, patient
from users.transport.transports import client

MOST = 256
"""This many items have golden embeddings, one request each; of others only the shape is checked."""
ALONE = "golden"
"""The name of the only array in a file of one space."""

Golden = Mapping[str, NDArray[np.float32]]
"""float32 of shape [n, dimension] of the first n items, by space."""


def golden_embeddings(
    endpoints: Sequence[Endpoint],
    images: ImageSet,
    timeout_s: float,
    path: str,
    say: Callable[[str], None],
) -> Golden:
    """Of every space that is computed, from the file at `path` where it has that space. Raises UsageError.

    `say` tells a person where an endpoint limits requests so much that it gives only some of them, and where
    these are all alike.
    """
    told = from_file(path, endpoints) if path else {}
    first: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        if facts_of(endpoint).computes:
            first.setdefault(endpoint.space, endpoint)
    return {
        space: told[space] if space in told else fetched(one, images, timeout_s, say)
        for space, one in first.items()
    }


def fetched(
    endpoint: Endpoint, images: ImageSet, timeout_s: float, say: Callable[[str], None]
) -> NDArray[np.float32]:
    """From an endpoint's answers, one row an item. Raises UsageError where it does not answer."""
    codec = codec_of(endpoint)
    count = min(MOST, images.count(codec.endpoint.contract))
    rows: list[NDArray[np.float32]] = []
    try:
        with client(codec, timeout_s) as asking, patient(say):
            # One by one: a batch would be the first of its size, and its cost would not be told.
            for index in range(count):
                prepared = codec.prepare(images, (index,))
                reply = ask_again(endpoint.address, functools.partial(asking.send, prepared))
                check_form(reply, 1, codec.endpoint.contract)
                rows.append(reply.embeddings[0])
    except RequestError as error:
        if not rows or not passes(error):
            raise UsageError(
                f"{endpoint.name} {endpoint.shown}: no golden embedding of item {len(rows) + 1} from it"
                f" ({error.whole})"
            ) from error
        say(
            f"{endpoint.name}: answers are compared for the first {len(rows)} of {count} items only, since it"
            f" limits requests ({error.whole})"
        )
    golden = np.stack(rows)
    if len(rows) > 1 and np.allclose(golden, rows[0], 1e-4, 1e-6):
        say(
            f"{endpoint.name}: {len(rows)} different items have the same embedding; its model may not read"
            " them, so compare what is sent with what it takes"
        )
    return golden


def from_file(path: str, endpoints: Sequence[Endpoint]) -> dict[str, NDArray[np.float32]]:
    """The arrays of an .npz by space. Raises UsageError where they are not those of the endpoints' spaces."""
    dimensions = {one.space: one.contract.dimension for one in endpoints if facts_of(one).computes}
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {name: np.asarray(arrays[name], dtype=np.float32) for name in arrays.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise UsageError(
            f"--golden {path}: cannot be read ({error}); give an .npz of arrays [items, dimension] by space"
        ) from error
    if set(found) == {ALONE} and len(dimensions) == 1:
        found = {next(iter(dimensions)): found[ALONE]}
    for name, rows in found.items():
        if name not in dimensions:
            known = ", ".join(dimensions)
            raise UsageError(f"--golden {path}: {name!r} is not a space of this study; they are {known}")
        if rows.ndim != 2 or rows.shape[1] != dimensions[name] or not len(rows):
            raise UsageError(
                f"--golden {path}: {name!r} has shape {list(rows.shape)}, and its endpoints answer with"
                f" {dimensions[name]} numbers each; give one row per item, in the order of the pictures"
            )
        if not np.isfinite(rows).all() or (rows.shape[1] > 1 and not rows.any(axis=1).all()):
            raise UsageError(
                f"--golden {path}: {name!r} has rows that are not vectors (all zeros, or not finite);"
                f" fix them"
            )
    return found
