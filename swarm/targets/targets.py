"""From options, or from the embedded servers' own words, to the endpoints of a study."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarm.backends.registry import ALL, SERVICES, EndpointKind, patterns_of
from swarm.errors import UsageError
from swarm.options.addresses import Place, place_of
from swarm.options.model import Options
from swarm.options.table import URLS, flag
from users.endpoint import EMULATED, Endpoint
from users.tls import OPEN, Security, SecurityError, token_of, variable_of


def flag_of(endpoint: Endpoint) -> str:
    """Which option names the target of an endpoint, a floor's too; the endpoint itself where none does."""
    name = url_option(endpoint.server, endpoint.protocol)
    return flag(name) if name in URLS else endpoint.floor_of or endpoint.name


def url_option(backend: str, protocol: str) -> str:
    """The name of the option with the address of a backend's server for one protocol."""
    return f"{backend}_url" if backend in SERVICES else f"{backend}_{protocol}_url"


def endpoints_from_options(options: Options, kinds: Sequence[EndpointKind]) -> list[Endpoint]:
    """Those of some kinds whose URLs were given. Raises UsageError on an unreadable one, or for none."""
    models = {"onnx": options.onnx_model, "trt": options.trt_model, EMULATED: EMULATED}
    made = []
    for kind in kinds:
        name = url_option(kind.backend, kind.protocol)
        if url := options.urls.get(name, ""):
            place = place_of(flag(name), url, kind.protocol)
            security = security_for(kind.backend, options.security)
            made.append(reached(kind, place, models.get(kind.backend, ""), security))
    if not made:
        wanted = dict.fromkeys(url_option(kind.backend, kind.protocol) for kind in kinds)
        given = " or ".join(flag(name) for name in wanted if name in URLS)
        raise UsageError(f"no endpoint is left to test: give {given or 'other --endpoints'}")
    check_named(options, kinds, {endpoint.name for endpoint in made})
    return made


def check_named(options: Options, kinds: Iterable[EndpointKind], made: Collection[str]) -> None:
    """Raises UsageError where --endpoints names what has no URL; `all` is all that have one."""
    named = [] if options.endpoints.strip() == ALL else patterns_of((), options.endpoints)
    for pattern in named:
        meant = [kind for kind in kinds if kind.matches([pattern])]
        if meant and not any(kind.name in made for kind in meant):
            option = url_option(meant[0].backend, meant[0].protocol)
            raise UsageError(f"--endpoints {pattern}: has no URL; give {flag(option)}, or leave it out")


def unasked(options: Options, endpoints: Collection[Endpoint]) -> str:
    """Which URLs were given that a study asks no endpoint of, as a sentence; empty where there is none."""
    asked = {url_option(endpoint.server, endpoint.protocol) for endpoint in endpoints}
    backends = {endpoint.server for endpoint in endpoints}
    left = [
        flag(name)
        for name in options.urls
        if name not in asked
        and name.removesuffix("_metrics_url") not in backends
        and not (options.skip_trt and name.startswith("trt_"))
    ]
    return f"{', '.join(left)}: this study asks no endpoint there; --endpoints names others" if left else ""


def security_for(backend: str, security: Security) -> Security:
    """How a backend's server is reached: with the variable of its token, if any. Raises UsageError."""
    made = replace(security, token=variable_of(backend))
    try:
        token_of(made)
    except SecurityError as error:
        raise UsageError(str(error)) from error
    return made


def reached(kind: EndpointKind, place: Place, model: str, security: Security) -> Endpoint:
    """The endpoint of a kind at a place."""
    return replace(kind.at(place.address, model), tls=place.tls, security=security)


def endpoints_from_ready(ready: Mapping[str, Any], kinds: Iterable[EndpointKind]) -> list[Endpoint]:
    """The endpoints of some kinds that embedded servers have, from their `ready` event."""
    made = []
    for kind in kinds:
        server = ready["endpoints"].get(kind.backend)
        if server is not None:
            # Only services of ours take a token, and all of them the one.
            security = replace(OPEN, token=variable_of("")) if kind.backend in SERVICES else OPEN
            address = server.get(kind.protocol)
            place = Place(address) if address else place_of(kind.backend, server["url"])
            made.append(reached(kind, place, server.get("model", ""), security))
    return made
