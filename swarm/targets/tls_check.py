"""The first words over TLS with a target: one sentence for each way in which they can go wrong."""

from __future__ import annotations

import ssl
from contextlib import closing
from dataclasses import replace

import gevent

from swarm.backends.admin_client import PATIENCE_S
from swarm.errors import UsageError
from users.endpoint import Endpoint
from users.errors import is_cut_off, tls_fault
from users.tls import OPEN
from users.transport.sockets import connect

HELLO = {
    "http": b"HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n",
    "grpc": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
}
"""What each protocol begins with, without the token: of HTTP/2 its preface, and settings that are empty."""
EXPIRED, NOT_YET, WRONG_NAME, WRONG_ADDRESS = 10, 9, 62, 64
"""OpenSSL's codes of a verification that failed."""


def check_tls(name: str, endpoint: Endpoint) -> None:
    """Raises UsageError where TLS fails, or the server demands a certificate of ours that we have not.

    By TLS 1.3 it says so only once the handshake is done, so it is greeted.
    """
    try:
        answered = greet(endpoint)
    except ssl.SSLCertVerificationError as error:
        raise UsageError(f"{name}: {untrusted(error)}") from error
    except (ssl.SSLError, ConnectionError) as error:
        if isinstance(error, ssl.SSLError) and not is_cut_off(error):
            raise UsageError(f"{name}: {tls_fault(error)}; {mend(error, endpoint)}") from error
        raise UsageError(f"{name}: hangs up in the handshake of TLS; {plain(endpoint)}") from error
    except OSError as error:
        raise UsageError(f"{name}: no TLS within {PATIENCE_S:g} s; {plain(endpoint)}") from error
    if not answered and endpoint.protocol == "grpc":
        # gRPC's own servers keep to themselves what they miss.
        own = "another" if endpoint.security.cert else "a"
        raise UsageError(
            f"{name}: hangs up behind the handshake of TLS; give {own} client certificate by"
            " --tls-client-cert and --tls-client-key if it demands one, or Triton's gRPC port"
        )


def greet(endpoint: Endpoint) -> bool:
    """Whether a connection that hears the protocol's first words is not closed for them. Raises OSError.

    Once there is TLS, only TLS' own faults are raised: what it is after all, the next question tells.
    """
    hello = HELLO[endpoint.protocol].replace(b"{address}", endpoint.address.encode())
    with gevent.Timeout(PATIENCE_S, TimeoutError()), closing(connect(endpoint)) as wire:
        try:
            wire.send_all((hello,))
            return bool(wire.recv(1))
        except TimeoutError:
            return True
        except OSError as error:
            if isinstance(error, ssl.SSLError) and not is_cut_off(error):
                raise
            return False


def untrusted(error: ssl.SSLCertVerificationError) -> str:
    """What is wrong with the server's certificate, and the mend."""
    told = error.verify_message.rstrip(".")
    if error.verify_code in (EXPIRED, NOT_YET):
        return f"its certificate is not valid now ({told}); renew it there, or set this host's clock"
    if error.verify_code in (WRONG_NAME, WRONG_ADDRESS):
        return f"its certificate is for another name ({told}); give the name that stands in it"
    return f"its certificate is not trusted ({told}); give its authority's by --tls-ca"


def mend(error: ssl.SSLError, endpoint: Endpoint) -> str:
    """What to do about a handshake that failed."""
    reason = error.reason or ""
    if "WRONG_VERSION" in reason or "RECORD_LAYER" in reason:
        return plain(endpoint)
    own = endpoint.security.cert
    return (
        "give one that it knows by --tls-client-cert and --tls-client-key"
        if own
        else "give --tls-client-cert and --tls-client-key"
    )


def plain(endpoint: Endpoint) -> str:
    """The mend where there is no TLS."""
    return f"give {endpoint.protocol}://{endpoint.address}, or the port that does"


def speaks_tls(endpoint: Endpoint) -> bool:
    """Whether it is TLS that an endpoint without it has met. It is asked without token and proof."""
    try:
        greet(replace(endpoint, tls=True, security=replace(OPEN, verify=False)))
    except ssl.SSLError as error:
        # One that wants more of us has said so by TLS.
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True
