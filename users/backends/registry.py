"""The backends that there are: those of the files in this folder, and those that a locustfile registers."""

import functools
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import replace

import users.backends
from users.backends.base import Backend, Facts
from users.codecs.base import Codec
from users.codecs.registry import codec_named
from users.endpoint import Endpoint

FLOOR = Facts(computes=False, floor=True)
_registered: dict[str, Backend] = {}


def register(*more: Backend) -> None:
    """Register backends of a locustfile, which each process reads: a built-in one of the name is replaced."""
    _registered.update({backend.name: backend for backend in more})


@functools.cache
def _found() -> Mapping[str, Backend]:
    """The `BACKENDS` of each file beside this one."""
    names = (f"{users.backends.__name__}.{one.name}" for one in pkgutil.iter_modules(users.backends.__path__))
    each = (getattr(importlib.import_module(name), "BACKENDS", ()) for name in names)
    return {backend.name: backend for some in each for backend in some}


def backends() -> Mapping[str, Backend]:
    """All that are known, by name."""
    return {**_found(), **_registered}


def backend_of(endpoint: Endpoint) -> Backend:
    """The endpoint's own. Raises LookupError where nobody has registered it."""
    known = backends()
    if endpoint.backend not in known:
        raise LookupError(f"there is no backend {endpoint.backend!r}; they are {', '.join(known)}")
    return known[endpoint.backend]


def codec_of(endpoint: Endpoint) -> Codec:
    """How requests to an endpoint are written, and answers read.

    Raises LookupError, TargetError for a file that is not a codec, ValueError if its settings are not valid.
    """
    whole = backend_of(endpoint).described(endpoint)
    return codec_named(whole.codec, whole.codec_sha256)(whole)


def facts_of(endpoint: Endpoint) -> Facts:
    """Its backend's, but for what it says itself; or a floor's. Raises LookupError."""
    if endpoint.floor_of:
        return FLOOR
    facts = backend_of(endpoint).facts
    computes = facts.computes if endpoint.computes is None else endpoint.computes
    return replace(facts, computes=computes, stands_for=endpoint.stands_for or facts.stands_for)


def has_floor(endpoint: Endpoint) -> bool:
    """Whether a null model takes its payload: not the models that turn another into what theirs takes."""
    backend = backend_of(endpoint)
    return backend.has_floor and endpoint.payload in backend.own_payloads


def is_adjustable(endpoint: Endpoint) -> bool:
    """Whether a model is behind it whose settings can be others for a run."""
    return backend_of(endpoint).adjust is not None and not endpoint.floor_of


def compressions_of(endpoint: Endpoint) -> tuple[str, ...]:
    """By which algorithms its requests may be compressed: as its file says, or its backend and protocol."""
    own: Sequence[str] | None = endpoint.settings.get("compression")
    return tuple(own or backend_of(endpoint).compressions.get(endpoint.protocol, ()))


def shares_memory(endpoint: Endpoint) -> bool:
    """Whether its inputs may lie in system shared memory: tensors of a known size, of a server that takes it.

    True of one that has not been asked yet.
    """
    backend, inputs, codec = backend_of(endpoint), endpoint.contract.inputs, endpoint.codec
    if not codec and (way := backend.ways.get((endpoint.payload, endpoint.protocol))):
        codec, inputs = way[0], way[1].inputs
    codec = codec or backend.codecs.get(endpoint.protocol, "")
    sized = all(one.dtype != "BYTES" and min(one.shape, default=1) > 0 for one in inputs)
    return backend.regions and sized and codec_named(codec, endpoint.codec_sha256).takes_places


def url_options() -> dict[str, tuple[Backend, str]]:
    """By the option's name the backend, and of what it is the address: a protocol, or `metrics`."""
    each = ((backend, of) for backend in backends().values() for of in backend.urls)
    return {backend.url_option(of): (backend, of) for backend, of in each}


def model_options() -> dict[str, Backend]:
    """By the option's name the backends whose models may be called otherwise."""
    return {f"{name}_model": backend for name, backend in backends().items() if backend.model_help}
