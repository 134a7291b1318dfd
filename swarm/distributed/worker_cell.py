"""From the master's message about a cell to the assignment of a worker's users; and their memory."""

from locust.env import Environment

import ctypes
import functools
import gc
import mmap
import os
import resource
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import gevent
import numpy as np
from numpy.typing import NDArray

from reports.ledger.axes import AXES
from swarm.errors import StudyError
from swarm.hosts.host import HOST_VARIABLE
from users.backends.registry import codec_of, facts_of
from users.codecs.base import PLACEHOLDER, Codec, PreparedRequest, rotation
from users.codecs.compression import Compressed
from users.codecs.v2 import REGIONS, SharedInputs, V2Codec
from users.endpoint import Endpoint
from users.errors import TargetError, tls_fault
from users.http2.sender import SCHEDULING
from users.inputs.images import ImageSet
from users.load.assignment import LIBRARY, MOST_AT_ONCE, Assignment, named, prepared
from users.load.mix import Traffic, mix_of
from users.load.replay import Replay
from users.load.user import InferenceUser
from users.tls import SecurityError, check_here
from users.transport.headers import headers_of
from users.transport.sockets import connect

YOUNG_OBJECTS = 10_000
"""New objects before Python collects garbage; its own threshold is 700."""
REACH_S = 5.0
OTHER_FILES = 64
"""Files that a worker has open besides one connection per user."""
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Of glibc's mallopt(3)."""
KEPT_BYTES = 1 << 29
COPIES_BYTES, HUGE_PAGE_BYTES = 160 << 20, 2 << 20
"""Room for a pool of tensors and a hundred copies; none of it is allocated before it is used."""


def user_classes_of(environment: Environment) -> list[type[InferenceUser]]:
    """The user class of a study's locustfile, and copies of it: one for each cell that runs at the same time.

    Locust spawns users by class, so that each class of this process has an assignment of its own.
    Raises StudyError where the locustfile has none.
    """
    known = [made for made in environment.user_classes if issubclass(made, InferenceUser)]
    if not known:
        raise StudyError(
            "the locustfile has no user class of inferswarm; import EmbeddingUser from users in it"
        )
    own = [made for made in known if made.__bases__ == (known[0],)]
    if not own:
        own = [type(f"{known[0].__name__}{number}", (known[0],), {}) for number in range(2, MOST_AT_ONCE + 1)]
        environment.user_classes += own
    return [known[0], *own]


def own_host() -> str:
    """The name of the client host that this process runs on: as the launcher calls it, or the machine's."""
    return os.environ.get(HOST_VARIABLE) or socket.gethostname()


def located(endpoint: Mapping[str, Any], addresses: Mapping[str, str]) -> Endpoint:
    """An endpoint from its dict, where this host reaches it: `addresses` has a server's address by host."""
    made = Endpoint.from_dict(dict(endpoint))
    return made.at(addresses[own_host()]) if own_host() in addresses else made


def assignment_of(data: Mapping[str, Any], study: Mapping[str, Any], images: ImageSet) -> Assignment:
    """An assignment with every request prepared, from the messages about the cell and the study."""
    by_library = data["client"] == LIBRARY
    prepare_memory(copies=by_library or study["trace"])
    endpoint = located(data["endpoint"], data["addresses"])
    check_secured(endpoint)  # of one that comes late nobody has asked whether it reaches its endpoints
    codec = own_codec(endpoint)
    if data.get("shared_memory"):
        share_inputs(codec, data, study["regions"], images)
    if data.get("compression"):
        codec = Compressed(codec, data["compression"], by_library)
    traffic = traffic_of(data)
    request_id = PLACEHOLDER if study["trace"] else ""
    pool, classes = pool_of(codec, images, data["batch"], traffic, request_id, by_library)
    if isinstance(codec, Compressed):
        codec.weigh(images, [one.indices for one in pool])
    return Assignment(
        codec,
        pool,
        study["timeout_s"],
        cell=data["cell"],
        repeat=data["repeat"],
        golden=golden_of(codec.endpoint, study["golden"]) if facts_of(endpoint).computes else None,
        min_cosine=study["min_cosine"],
        images=images if by_library else None,
        scheduling=study.get("scheduling", SCHEDULING),
        traffic=traffic,
        classes=classes,
        traceparent=study.get("traceparent", 0.0),
        **{name: data[name] for name in AXES if name in Assignment.__dataclass_fields__},
    )


def traffic_of(data: Mapping[str, Any]) -> Traffic | None:
    """What says which requests are sent, where they are not all alike: a trace, or shares."""
    if "trace" in data:
        return Replay.decode(data["trace"])
    return mix_of(data["batch_mix"], data["picture_mix"], data["batch"])


def pool_of(
    codec: Codec, images: ImageSet, batch: int, traffic: Traffic | None, request_id: str, by_library: bool
) -> tuple[list[PreparedRequest], dict[str, range]]:
    """Prepared requests, and where those of each class are among them; no classes where all are alike.

    All classes together take no more memory than the requests of one: each has fewer, but one at least.
    """
    contract, made = codec.endpoint.contract, named if by_library else prepared
    if traffic is None:
        return made(codec, images, rotation(images.count(contract), batch), request_id), {}
    batches, classes = list[tuple[int, ...]](), dict[str, range]()
    for one in traffic.classes:
        own = images.items(contract, one.picture)
        some = [tuple(own[place] for place in batch) for batch in rotation(len(own), one.batch)]
        classes[one.label] = range(len(batches), len(batches) + max(1, len(some) // len(traffic.classes)))
        batches += some[: len(classes[one.label])]
    return made(codec, images, batches, request_id), classes


def own_codec(endpoint: Endpoint) -> Codec:
    """The endpoint's codec on this host. Raises StudyError where it is a file that is not here."""
    try:
        return codec_of(endpoint)
    except TargetError as error:
        raise StudyError(f"host {own_host()}: {endpoint.name}: {error}") from error


def share_inputs(codec: Codec, data: Mapping[str, Any], regions: str, images: ImageSet) -> None:
    """Its requests name the region of the cell's inputs. Raises StudyError where this host has it not."""
    assert isinstance(codec, V2Codec), "as --shared-memory applies to"
    codec.shared = SharedInputs.of(codec.endpoint.contract, regions, data["cell"], images, data["batch"])
    if not (REGIONS / codec.shared.region).exists():
        raise StudyError(
            f"host {own_host()}: has no shared memory with the master, which --shared-memory needs; run the"
            " workers on the master's host, or leave it out"
        )


def golden_of(endpoint: Endpoint, spaces: Mapping[str, bytes]) -> NDArray[np.float32] | None:
    """float32 of shape [n, dimension] of the endpoint's space; None where there are none."""
    if not (told := spaces.get(endpoint.space)):
        return None
    return np.frombuffer(told, dtype=np.float32).reshape(-1, endpoint.contract.dimension)


def check_files(users: int) -> None:
    """Raises StudyError where this process may not have a connection for each of so many users."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if users + OTHER_FILES > most:
        raise StudyError(
            f"host {own_host()}: {users:,} users on one worker need about {users + OTHER_FILES:,} open files,"
            f" and a process there may open {most:,}; raise `ulimit -n`, or spread them over more workers"
            " (--processes)"
        )


def check_reach(endpoint: Endpoint) -> None:
    """Raises StudyError where this host cannot connect to an endpoint, or lacks what secures it."""
    check_secured(endpoint)
    try:
        with gevent.Timeout(REACH_S, TimeoutError("no answer within the timeout")):
            connect(endpoint).close()
    except ssl.SSLError as error:
        raise StudyError(
            f"host {own_host()} cannot set up TLS with {endpoint.name} at {endpoint.address}:"
            f" {tls_fault(error)}; the study's own host can: compare its clock, its files of certificates,"
            " and the address there"
        ) from error
    except OSError as error:
        raise StudyError(
            f"host {own_host()} cannot connect to {endpoint.name} at {endpoint.address}"
            f" ({error.strerror or error}); give a URL that every host can reach"
        ) from error


def check_secured(endpoint: Endpoint) -> None:
    """Raises StudyError where this process lacks the token of an endpoint, or a file that its TLS needs."""
    try:
        check_here(endpoint.security)
        headers_of(endpoint)
    except SecurityError as error:
        raise StudyError(f"host {own_host()}: {error}") from error


def keep_memory(library: ctypes.CDLL | None = None) -> bool:
    """Have the C library keep freed memory for the next request; whether it could be told.

    glibc returns what is freed at the end of its heap to the kernel, and maps large blocks again. A request
    of 32 pictures then costs some ten thousand page faults, tens of milliseconds on virtual machines: several
    times what writing its tensor takes, and a client that runs for a while in other memory does not pay them.
    """
    mallopt = getattr(library or ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))


@functools.cache
def prepare_memory(copies: bool = True) -> bool:
    """Keep memory, and ask for huge pages where requests are copied during a load: those of a library, and
    those with ids. Whether all that was asked for could be had.
    """
    return keep_memory() and (not copies or ask_for_huge_pages(COPIES_BYTES))


def ask_for_huge_pages(size: int, library: ctypes.CDLL | None = None) -> bool:
    """Ask for huge pages for the next `size` bytes that the C library gives out; whether it could be done.

    grpcio copies each request before it sends it. On pages of 4 KB that takes a tenth more of its processor
    time. Only where memory is kept: the block that is asked for and freed here stays at the heap's end.
    """
    heap = library or ctypes.CDLL(None)
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None or not hasattr(heap, "madvise"):
        return False
    heap.malloc.restype, heap.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    heap.free.argtypes = [ctypes.c_void_p]
    heap.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = heap.malloc(size)
    if not block:
        return False
    first = -(-block // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
    refused = heap.madvise(first, block + size - first - HUGE_PAGE_BYTES, advice)
    heap.free(block)
    return not refused


def settle_memory() -> None:
    """Before a load: what is there stays, and Python's garbage collector need not look at it each time."""
    gc.set_threshold(YOUNG_OBJECTS)
    gc.unfreeze()  # what an earlier load left behind may go
    gc.collect()
    give_back()
    gc.freeze()


def give_back() -> None:
    """Return to the kernel what is free, where glibc can be asked to: tens of megabytes that pools have left,
    within which a load's own memory could grow for minutes, and nobody would see it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
