"""From options, or from the embedded servers' own words, to a study's endpoints and its Tritons' metrics."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swarm.backends.admin_client import PATIENCE_S
from swarm.backends.registry import ALL, SERVICES, EndpointKind, patterns_of
from swarm.backends.statistics import metrics_reader
from swarm.errors import UsageError
from swarm.options.addresses import Place, check_secrets, place_of
from swarm.options.model import URLS, Options, flag
from users.endpoint import EMULATED, Endpoint
from users.errors import RequestError, translated
from users.tls import OPEN, Security, SecurityError, token_of, variable_of

OPTIONS = {"onnx": "onnx_metrics_url", "trt": "trt_metrics_url"}


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
            made.append(kind.at(place.address, models.get(kind.backend, ""), place.tls, security))
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
            made.append(kind.at(place.address, server.get("model", ""), place.tls, security))
    return made


def metrics_addresses(urls: Mapping[str, str], ready: Mapping[str, Any]) -> dict[str, str]:
    """`http://host:port/metrics` by backend, from the options' URLs and the embedded servers' `ready` event.

    Raises UsageError on an unreadable URL.
    """
    servers = ready.get("endpoints", {})
    found = {backend: server["metrics"] for backend, server in servers.items() if "metrics" in server}
    named = {backend: option for backend, option in OPTIONS.items() if urls.get(option)}
    return found | {backend: metrics_url(flag(option), urls[option]) for backend, option in named.items()}


def metrics_url(option: str, url: str) -> str:
    """The whole URL of one that may lack its scheme and its path. Raises UsageError.

    >>> metrics_url("--onnx-metrics-url", "gpu-host:8012")
    'http://gpu-host:8012/metrics'
    """
    check_secrets(option, url)
    scheme, _, rest = url.rpartition("://")
    place, _, path = rest.partition("/")
    try:
        if scheme not in ("", "http", "https"):
            raise UsageError
        return f"{scheme or 'http'}://{place_of(option, place).address}/{path or 'metrics'}"
    except UsageError:
        raise UsageError(
            f"{option} {url!r}: give host:port or http://host:port/metrics, https for TLS"
        ) from None


def check_metrics(urls: Mapping[str, str], security: Security = OPEN) -> None:
    """Can the metrics that the options name be read? Raises UsageError."""
    for backend, url in metrics_addresses(urls, {}).items():
        try:
            secured = security_for(backend, security)
            with translated(), metrics_reader(url, (), PATIENCE_S, secured) as read:
                read()
        except RequestError as error:
            raise UsageError(f"{flag(OPTIONS[backend])} {url}: cannot be read ({error})") from error
