"""The port that Prometheus scrapes: text, or protobuf with native histograms for one that prefers it."""

import errno
import os
from collections.abc import Callable, Iterable
from typing import Any

from gevent import socket
from gevent.pywsgi import WSGIServer
from prometheus_client import CollectorRegistry, make_wsgi_app

from swarm.errors import UsageError
from swarm.exporters.live import Live
from swarm.exporters.protobuf import CONTENT_TYPE, page, wanted
from swarm.output.allowed_hosts import guarded


def start_exporter(host: str, port: int, live: Live) -> WSGIServer:
    """Serve `http://host:port/metrics` until the returned server is stopped. Raises UsageError."""
    server = WSGIServer(listener(host, port), guarded(application(live)), log=None)
    server.start()
    return server


def application(live: Live) -> Callable[..., Iterable[bytes]]:
    """The WSGI application that answers each scrape in the form it asks for."""
    registry = CollectorRegistry()
    registry.register(live)
    # Compressing would take longer than all the rest, in the process that measures.
    text: Callable[..., Iterable[bytes]] = make_wsgi_app(registry, disable_compression=True)

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "GET" and wanted(environ.get("HTTP_ACCEPT", "")):
            start("200 OK", [("Content-Type", CONTENT_TYPE)])
            return [page(live.collect())]
        return text(environ, start)

    return answer


def listener(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises UsageError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # create_server adds the address to the system's words; a name that is not found has other numbers.
        known = error.errno in errno.errorcode
        reason = os.strerror(error.errno or 0) if known else str(error.strerror or error)
        named = f"--prometheus-port {port}: cannot listen on {host} ({reason.lower()}); give a free port"
        if not known or error.errno == errno.EADDRNOTAVAIL:
            reason = reason.partition(" (")[0].lower()
            named = f"--prometheus-host {host}: is not an address of this machine ({reason}); name another"
        raise UsageError(named) from error
