"""`python -m server service`: the PyTorch service or a gateway on uvicorn, set up by INFERSWARM_*."""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import sys
import warnings
from typing import TYPE_CHECKING

from server.errors import SetUpError, not_loaded, sentence
from server.net import is_loopback
from server.settings import Settings

if TYPE_CHECKING:
    from server.service.app import Embedder

OPEN = (
    "INFERSWARM_HOST is {host} and INFERSWARM_TOKEN is not set: anyone who can reach port {port} can use the "
    "service and read its metrics; set a token, or INFERSWARM_HOST to 127.0.0.1."
)


def main(argv: list[str]) -> int:
    """Serve until a signal; 2 where the settings, the port or the model is not valid."""
    argparse.ArgumentParser(prog="python -m server service", description=__doc__).parse_args(argv)
    settings = Settings.from_env(os.environ)
    check_certificate(settings)
    # Before PyTorch is imported and the model loaded, which takes much longer than finding a port taken.
    with bind(settings) as listener:
        if not (settings.token or is_loopback(settings.host)):
            print(OPEN.format(host=settings.host, port=settings.port), file=sys.stderr, flush=True)
        return serve(settings, listener)


def check_certificate(settings: Settings) -> None:
    """SetUpError where TLS is asked for and its two files is not valid."""
    if not settings.tls_cert:
        return
    try:
        # An empty password: where a key has one, OpenSSL would ask for it on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.tls_cert, settings.tls_key, password=lambda: b""
        )
    except (OSError, ValueError) as error:
        raise SetUpError(
            f"INFERSWARM_TLS_CERT {settings.tls_cert} and INFERSWARM_TLS_KEY {settings.tls_key} cannot"
            f" be used "
            f"({sentence(error)}): give a certificate and its key without a password, as PEM files."
        ) from error


def bind(settings: Settings) -> socket.socket:
    """The socket to serve on, which does not listen yet; SetUpError where it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named as TCP: asyncio turns Nagle's algorithm off for no other, and it holds answers back for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # As servers do: a port whose last connections are still winding down is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise _cannot_listen(settings, error) from error
    return listener


def serve(settings: Settings, listener: socket.socket) -> int:
    """Load the model and serve until a signal; 2 and one sentence where it cannot be loaded."""
    import uvicorn

    from server.service.app import create_app
    from server.service.http_server import allow_files, configured, stopped_by_signals

    failures: list[Exception] = []

    def stop(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    app = create_app(embedder_of(settings), settings, on_failure=stop)
    config = configured(app, settings)
    allow_files()
    server = uvicorn.Server(config)
    try:
        # Two processes can bind a port that neither listens on yet; here the later one finds out.
        listener.listen(config.backlog)
    except OSError as error:
        raise _cannot_listen(settings, error) from error
    with stopped_by_signals(server), warnings.catch_warnings():
        # Pillow's remarks on odd files, which anybody could fill the log with.
        warnings.filterwarnings("ignore", module=r"PIL\.")
        server.run(sockets=[listener])
    for failure in failures:
        print(sentence(failure) if isinstance(failure, SetUpError) else not_loaded(failure), file=sys.stderr)
    return 0 if server.started and not failures else 2


def embedder_of(settings: Settings) -> Embedder:
    """The model in this process, or the one behind the upstream; only the first needs PyTorch."""
    if settings.upstream:
        from server.models.triton_upstream import GatewayEmbedder

        return GatewayEmbedder(settings)
    from server.models.clip import ClipEmbedder

    return ClipEmbedder(settings)


def _cannot_listen(settings: Settings, error: OSError) -> SetUpError:
    why = (error.strerror or str(error)).lower()
    return SetUpError(
        f"the service cannot listen on {settings.host}:{settings.port} ({why}): "
        "set INFERSWARM_PORT to a free port, and INFERSWARM_HOST to an address of this machine."
    )
