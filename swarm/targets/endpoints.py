"""Which endpoints a study asks, and where they are, by options or by the embedded servers' own words."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from swarm.closest import closest, some
from swarm.errors import UsageError
from swarm.options.addresses import Place, check_secrets, place_of
from swarm.options.model import Options, flag
from users.backends.asking import page_reader
from users.backends.registry import backend_of, backends, has_floor, url_options
from users.endpoint import Endpoint
from users.errors import RequestError
from users.metrics import DCGM_FIELDS, gpus_of
from users.tls import OPEN, Security, SecurityError, token_of, variable_of
from users.transport.admin_connection import PATIENCE_S

ALL = "all"
FIVE = ("pytorch-http", "onnx-http", "onnx-grpc", "trt-http", "trt-grpc")
"""The endpoints of the published study: one model, served in several ways."""
EVERY = (*FIVE, "gateway-http", "onnx-jpeg-*", "onnx-uint8-*")
"""What `--endpoints all` tests: those and the others."""


def chosen(study: Sequence[str], options: Options, own: Sequence[Endpoint] = ()) -> list[Endpoint]:
    """The endpoints that a study asks, its own presets at no address yet; those of --endpoint last.

    They are named by the patterns of --endpoints, or else they are all of --endpoint, and of presets those of
    the `study`'s patterns, where no others are asked. Raises UsageError where a pattern matches nothing, or
    nothing is left.
    """
    presets = [endpoint for backend in backends().values() for endpoint in backend.endpoints]
    patterns = patterns_of(study, options.endpoints)
    check_patterns(patterns, [*presets, *own])
    wanted = own if not options.endpoints else [one for one in own if matches(one, patterns)]
    alone = bool(own) and not options.endpoints and not options.urls
    found = [] if alone else [one for one in presets if matches(one, patterns)]
    left = [one for one in found if not (options.skip_trt and backend_of(one).facts.compiled)]
    if not left and not wanted:
        raise UsageError("--skip-trt: leaves no endpoint; leave it out, or name others with --endpoints")
    for one in wanted:
        if one.name in {preset.name for preset in left} and options.urls:
            raise UsageError(
                f"--endpoint {one.name}: a built-in endpoint has the same name, and its URL is given; give"
                " yours another name"
            )
    return [*left, *wanted]


def check_patterns(patterns: Iterable[str], known: Sequence[Endpoint]) -> None:
    """Raises UsageError where a pattern matches none of the known endpoints."""
    for pattern in patterns:
        if not any(matches(endpoint, [pattern]) for endpoint in known):
            own_first = sorted(known, key=lambda each: not each.address)
            names = [each.name for each in own_first if not backend_of(each).facts.stands_for]
            like = closest(pattern, (each.name for each in known))
            raise UsageError(
                f"--endpoints {pattern:.80}: matches no endpoint; {like}there are {some(names)}, or {ALL}"
            )


def possible(asked: Sequence[Endpoint], options: Options) -> list[Endpoint]:
    """Those that there may be once servers are, floors last: which engine is compiled, these say only then.

    Raises UsageError where an option's URL cannot be read, or leaves none.
    """
    found = [one for one in asked if embeddable(one, bool(options.emulate))]
    if not options.embedded:
        found = endpoints_from_options(options, asked)
    return [*found, *(one.floor() for one in found if options.floor and has_floor(one))]


def embeddable(endpoint: Endpoint, emulated: bool) -> bool:
    """Whether an embedded server, which is `emulated` or not, may be what the endpoint asks."""
    backend = backend_of(endpoint)
    return backend.facts.emulated == emulated and bool(backend.embedded or backend.facts.compiled)


def patterns_of(own: Sequence[str], asked: str) -> Sequence[str]:
    """What stands between the commas of `asked`, or the study's own patterns."""
    given = [part.strip() for part in asked.split(",") if part.strip()]
    return EVERY if given == [ALL] else given or own


def matches(endpoint: Endpoint, patterns: Iterable[str]) -> bool:
    """Whether some shell pattern names it, or what it stands for."""
    names = [endpoint.name]
    if stands_for := backends().get(backend_of(endpoint).facts.stands_for):
        way = (endpoint.payload, endpoint.protocol)
        names += [one.name for one in stands_for.endpoints if (one.payload, one.protocol) == way]
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def servers_for(asked: Iterable[Endpoint], emulated: bool) -> tuple[list[str], list[str]]:
    """Which embedded servers to start (one for all where `emulated`), and the payloads of their models."""
    each = [(backend_of(endpoint), endpoint.payload) for endpoint in asked]
    here = [(one, payload) for one, payload in each if one.embedded and one.facts.emulated == emulated]
    made = {payload for one, payload in here if payload not in one.own_payloads}
    return list(dict.fromkeys(one.embedded for one, _ in here)), ["fp32", *sorted(made)]


def flag_of(endpoint: Endpoint) -> str:
    """Which option names the target of an endpoint, a floor's too; the endpoint itself where none does."""
    if not backend_of(endpoint).ways:
        return f"--endpoint {endpoint.name}"
    name = url_option(endpoint)
    return flag(name) if name in url_options() else endpoint.floor_of or endpoint.name


def url_option(endpoint: Endpoint) -> str:
    """The name of the option with the address of an endpoint's server."""
    return backend_of(endpoint).url_option(endpoint.protocol)


def endpoints_from_options(options: Options, asked: Sequence[Endpoint]) -> list[Endpoint]:
    """Those asked whose URLs were given, and those of --endpoint, which have one.

    Raises UsageError on an unreadable one, or for none.
    """
    made = []
    for endpoint in asked:
        option, backend = url_option(endpoint), backend_of(endpoint)
        if endpoint.address:
            made.append(endpoint)
        if url := options.urls.get(option, ""):
            place = place_of(flag(option), url, endpoint.protocol)
            own = options.models.get(f"{backend.name}_model", backend.model)
            made.append(located(endpoint, place, own, security_for(backend.name, options.security)))
    if not made:
        wanted = dict.fromkeys(map(url_option, asked))
        given = " or ".join(flag(name) for name in wanted if name in url_options())
        raise UsageError(f"no endpoint is left to test: give {given or 'other --endpoints'}")
    check_named(options, asked, {endpoint.name for endpoint in made})
    return made


def located(endpoint: Endpoint, place: Place, own_model: str, security: Security) -> Endpoint:
    """The same at a place, given the name of its backend's own model there."""
    model = backend_of(endpoint).model_for(endpoint.payload, own_model)
    return replace(endpoint, address=place.address, tls=place.tls, model=model, security=security)


def check_named(options: Options, asked: Iterable[Endpoint], made: Collection[str]) -> None:
    """Raises UsageError where --endpoints names what has no URL; `all` is all that have one."""
    named = [] if options.endpoints.strip() == ALL else patterns_of((), options.endpoints)
    for pattern in named:
        meant = [endpoint for endpoint in asked if matches(endpoint, [pattern])]
        if meant and not any(endpoint.name in made for endpoint in meant):
            option = flag(url_option(meant[0]))
            raise UsageError(f"--endpoints {pattern}: has no URL; give {option}, or leave it out")


def unasked(options: Options, endpoints: Collection[Endpoint]) -> str:
    """Which URLs were given that a study asks no endpoint of, as a sentence; empty where there is none."""
    asked = {url_option(endpoint) for endpoint in endpoints}
    asked |= {backend_of(endpoint).url_option("metrics") for endpoint in endpoints}
    given = [(name, url_options()[name][0].facts.compiled) for name in options.urls if name not in asked]
    left = [flag(name) for name, compiled in given if not (options.skip_trt and compiled)]
    return f"{', '.join(left)}: this study uses no endpoint there; see --endpoints" if left else ""


def security_for(backend: str, security: Security) -> Security:
    """How a backend's server is reached: with the variable of its token, if any. Raises UsageError."""
    made = replace(security, token=variable_of(backend))
    try:
        token_of(made)
    except SecurityError as error:
        raise UsageError(str(error)) from error
    return made


def endpoints_from_ready(ready: Mapping[str, Any], asked: Iterable[Endpoint]) -> list[Endpoint]:
    """Those asked that embedded servers have, from their `ready` event."""
    made = []
    for endpoint in asked:
        server = ready["endpoints"].get(endpoint.shares)
        if server is not None:
            # All embedded servers that take a token take the same one.
            takes_token = backend_of(endpoint).takes_token
            security = replace(OPEN, token=variable_of("")) if takes_token else OPEN
            address = server.get(endpoint.protocol)
            place = Place(address) if address else place_of(endpoint.backend, server["url"])
            made.append(located(endpoint, place, server.get("model", ""), security))
    return made


def metrics_addresses(urls: Mapping[str, str], ready: Mapping[str, Any]) -> dict[str, str]:
    """`http://host:port/metrics` by backend, from the options' URLs and the embedded servers' `ready` event.

    Raises UsageError on an unreadable URL.
    """
    servers = ready.get("endpoints", {})
    found = {backend: server["metrics"] for backend, server in servers.items() if "metrics" in server}
    named = {name: backend.url_option("metrics") for name, backend in backends().items()}
    given = {name: option for name, option in named.items() if urls.get(option)}
    return found | {name: metrics_url(flag(option), urls[option]) for name, option in given.items()}


def metrics_url(option: str, url: str) -> str:
    """The whole URL of one that may lack its scheme and its path. Raises UsageError.

    >>> metrics_url("--onnx-metrics-url", "gpu-host:8012")
    'http://gpu-host:8012/metrics'
    """
    check_secrets(option, url, page=True)
    scheme, _, rest = url.rpartition("://")
    place, _, path = rest.partition("/")
    try:
        if scheme not in ("", "http", "https") or "#" in path:
            raise UsageError
        return f"{scheme or 'http'}://{place_of(option, place).address}/{path or 'metrics'}"
    except UsageError:
        raise UsageError(
            f"{option} {url!r}: give host:port or http://host:port/metrics, https for TLS"
        ) from None


def dcgm_url(given: str) -> str:
    """The whole URL of dcgm-exporter's page; empty where none is given. Raises UsageError."""
    return metrics_url(flag("dcgm_metrics_url"), given) if given else ""


def check_metrics(urls: Mapping[str, str], security: Security = OPEN, dcgm: str = "") -> None:
    """Can the metrics that the options name be read? Raises UsageError. dcgm-exporter gets no token."""
    pages = [
        (flag(backends()[name].url_option("metrics")), url, security_for(name, security))
        for name, url in metrics_addresses(urls, {}).items()
    ]
    pages += [(flag("dcgm_metrics_url"), dcgm_url(dcgm), security)] if dcgm else []
    for option, url, how in pages:
        page = _page_at(option, url, how)
        if option == flag("dcgm_metrics_url") and not _tells_of_gpus(page):
            raise UsageError(f"{option} {url}: has no figures of GPUs: give dcgm-exporter's page")


def _page_at(option: str, url: str, security: Security) -> str:
    try:
        with page_reader(url, PATIENCE_S, security) as read:
            return read()
    except RequestError as error:
        raise UsageError(f"{option} {url}: cannot be read ({error})") from error


def _tells_of_gpus(page: str) -> bool:
    try:
        return bool(gpus_of(page, DCGM_FIELDS))
    except ValueError:
        return False
