"""What a server is asked of itself, whatever its backend: its set-up, its counters, its metrics."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import RequestError, translated
from users.redact import quoted
from users.tls import OPEN, Security
from users.transport.admin_connection import PATIENCE_S, AdminConnection, Read, authority_at

AGAIN_S, TRIES = 0.05, 20
STATED = ("model", "weights", "emulated", "precision", "machine", "server_version")
WHO = ("identity", "version")
"""Of the process that counts, and of its model."""
MOST = 120
"""Characters shown of each."""


def read_serving(endpoint: Endpoint) -> dict[str, Any]:
    """The fields of a ledger's `serving` record, or `{"error": sentence}`; it never raises."""
    try:
        with translated():
            return dict(backend_of(endpoint).describe(endpoint).get("serving", {}))
    except RequestError as error:
        return {"error": f"the configuration of {endpoint.name} cannot be read ({error.kind})"}


def stated(endpoint: Endpoint) -> dict[str, str]:
    """Those of `STATED` that the server tells; nothing of one of another make, and it never raises."""
    try:
        with translated():
            told = backend_of(endpoint).describe(endpoint)
    except RequestError:
        return {}
    found = {name: told[name] for name in STATED if isinstance(told.get(name), str)}
    return {name: text for name, value in found.items() if (text := quoted(value)[:MOST])}


def read_counters(endpoint: Endpoint) -> dict[str, Any]:
    """`{"counters": {…}}`, cumulative since the server's start, with those of `WHO` if told; it never raises.

    Where they cannot be read, `{"error": sentence, "error_kind": …}`: a server that is gone is told from one
    that does not say.
    """
    try:
        with translated(), backend_of(endpoint).counters(endpoint, PATIENCE_S) as read:
            found = read()
            return {"counters": found["server"], **{name: found[name] for name in WHO if name in found}}
    except RequestError as error:
        text = f"the counters of {endpoint.name} cannot be read ({error})"
        return {"error": text, "error_kind": str(error.kind)}


def unread(endpoint: Endpoint) -> Iterator[str]:
    """Why an endpoint's counters, or its file's page of metrics, cannot be read; it never raises."""
    told = read_counters(endpoint)
    if "error" in told:
        yield str(told["error"])
    if url := endpoint.settings.get("metrics"):
        try:
            with translated(), metrics_reader(url, endpoint, PATIENCE_S) as read:
                read()
        except RequestError as error:
            yield f"the metrics of {endpoint.name} cannot be read ({error})"


def counted(read: Callable[[], dict[str, Any]], least: int, sleep: Callable[[float], None]) -> dict[str, Any]:
    """What is read once it holds `least` requests, or patience ends: some count one after answering it."""
    now = read()
    for _ in range(TRIES):
        if "requests" not in now.get("counters", {}) or requests_in(now) >= least:
            break
        sleep(AGAIN_S)
        now = read()
    return now


def requests_in(reading: dict[str, Any]) -> int:
    """How many requests a server has counted since its start; 0 where it does not tell."""
    return int(reading.get("counters", {}).get("requests") or 0)


@contextmanager
def page_reader(
    url: str, timeout_s: float, security: Security = OPEN, authority: str = ""
) -> Iterator[Callable[[], str]]:
    """Reads the page of metrics at `url` over one connection, as AdminConnection is given the rest.

    Readings raise RequestError.
    """
    parts = urlsplit(url)
    secured = parts.scheme == "https", security
    with closing(AdminConnection(parts.netloc, timeout_s, *secured, authority=authority)) as connection:
        yield lambda: connection.get(urlunsplit(("", "", *parts[2:])))


@contextmanager
def metrics_reader(url: str, endpoint: Endpoint, timeout_s: float) -> Iterator[Read]:
    """Reads what an endpoint's backend finds on that page. Readings raise RequestError or ValueError."""
    metrics = backend_of(endpoint).metrics
    parse = metrics(endpoint) if metrics else lambda page: {}
    # A page that an endpoint's file names may be anybody's: the token is for the endpoint's own host.
    foreign = url == endpoint.settings.get("metrics") and urlsplit(url).hostname != endpoint.host
    authority = authority_at(url, endpoint)
    with page_reader(url, timeout_s, OPEN if foreign else endpoint.security, authority) as read:
        yield lambda: parse(read())
