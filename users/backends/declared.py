"""A server that a file describes, over HTTP or gRPC: it states its own times where the file says."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from users.backends.base import Backend, Facts
from users.codecs.server_timing import NS
from users.endpoint import Endpoint
from users.errors import RequestError, TargetError
from users.metrics import identity, samples, total
from users.refusals import explain_refusal
from users.tls import OPEN
from users.transport.admin_connection import AdminConnection, Read, authority_at, get

STARTED = "process_start_time_seconds"
"""Every client library of Prometheus exports it."""
COUNTS = ("requests", "successes", "failures", "images", "executions", "cache_hits", "cache_queries")
"""The key of counts; all others are times. Of a cache's answers and what it was asked, in whatever unit."""
PREFIX_CACHES = ("vllm:prefix_cache", "vllm:gpu_prefix_cache")
"""How the names of vLLM's counters of tokens begin, of those that it had already and of all; newest first."""


def check(endpoint: Endpoint) -> None:
    """Ready, where its file says how that is asked."""
    path = (endpoint.settings.get("ready") or {}).get("path")
    if not path:
        return
    fix = "wait for it, or fix ready.path"
    try:
        reply = get(endpoint, path)
    except RequestError as error:
        raise TargetError(explain_refusal(endpoint, f"GET {path}", error, fix)) from error
    if reply.error is not None and not 200 <= reply.status < 300:
        raise TargetError(explain_refusal(endpoint, f"GET {path}", reply.error, fix))


@contextmanager
def counters(endpoint: Endpoint, timeout_s: float) -> Iterator[Read]:
    """By the page of metrics that the file names; nothing where it names none."""
    told: Mapping[str, str] = (endpoint.settings.get("times") or {}).get("metrics") or {}
    with ExitStack() as stack:
        if not told:
            yield lambda: {"server": {}}
            return
        parts = urlsplit(told["url"])
        # The token is for the endpoint's own host alone.
        own = parts.hostname == endpoint.host and (parts.scheme == "https" or not endpoint.tls)
        security = endpoint.security if own else OPEN
        place = (parts.netloc, timeout_s, parts.scheme == "https", security)
        opened = AdminConnection(*place, authority=authority_at(told["url"], endpoint))
        connection = stack.enter_context(closing(opened))

        def read() -> dict[str, Any]:
            page = connection.get(urlunsplit(("", "", *parts[2:])) or "/metrics")
            return {"server": reading(page, told), **identity(page, STARTED)}

        yield read


def reading(page: str, told: Mapping[str, str]) -> dict[str, int]:
    """Counters from a page of metrics: each the sum over the samples of the name that was given for it.

    Raises RequestError with the reason where one cannot be read.

    >>> reading('waits_sum{model="a"} 1.5\\nwaits_sum{model="b"} 2', {"url": "…", "queue": "waits_sum ms"})
    {'queue_ns': 3500000}
    """
    found = {}
    for part, text in {**prefix_cache(page), **told}.items():
        if part == "url":
            continue
        name, _, unit = text.partition(" ")
        if part in COUNTS:
            found[part] = round(total(page, name))
        else:
            found[f"{part}_ns"] = round(total(page, name) * NS[unit or "s"])
    if found.keys() >= {"requests", "failures"}:  # of which a mean is not to be taken
        found.setdefault("successes", max(0, found["requests"] - found["failures"]))
    return found


def prefix_cache(page: str) -> dict[str, str]:
    """By our counts the metrics of vLLM's prefix cache, where a page has both."""
    for begin in PREFIX_CACHES:
        names = {"cache_hits": f"{begin}_hits_total", "cache_queries": f"{begin}_queries_total"}
        if all(any(samples(page, {name})) for name in names.values()):
            return names
    return {}


SERVICE = Backend(name="service", facts=Facts(), check=check, counters=counters)
RPC = Backend(name="rpc", facts=Facts(), counters=counters)
BACKENDS = (SERVICE, RPC)
