"""Do the options of TLS serve? Read before anything starts, so that no request fails for them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from swarm.errors import UsageError
from swarm.options.addresses import Place, check_secrets, place_of
from swarm.options.table import flag
from users.tls import Security, new_context

if TYPE_CHECKING:
    from swarm.options.model import Options

FILES = ("tls_ca", "tls_client_cert", "tls_client_key")
NO_VERIFY = "tls_no_verify"
PEM = "name a file in PEM form"


def check_tls(options: Options) -> None:
    """Are all URLs readable, and the options of TLS of use to them? Raises UsageError."""
    secure = [name for name, url in options.urls.items() if place(name, url).tls]
    given = [name for name in (*FILES, NO_VERIFY) if getattr(options, name)]
    if given and not secure:
        raise UsageError(
            f"{flag(given[0])}: is of TLS; give a target as https://host:port or grpcs://host:port, too"
        )
    if bool(options.tls_client_cert) != bool(options.tls_client_key):
        one, other = (
            ("tls_client_cert", "tls_client_key")
            if options.tls_client_cert
            else ("tls_client_key", "tls_client_cert")
        )
        raise UsageError(f"{flag(one)}: a certificate and its key belong together; give {flag(other)}, too")
    if options.tls_no_verify:
        check_no_verify(options, secure)
    check_files(options.security)


def place(name: str, url: str) -> Place:
    """Where one of the URL options leads. Raises UsageError; a path is of metrics alone."""
    if name.endswith("_metrics_url"):
        check_secrets(flag(name), url)
        return Place("", url.startswith("https://"))
    return place_of(flag(name), url, "grpc" if name.endswith("_grpc_url") else "http")


def check_no_verify(options: Options, secure: list[str]) -> None:
    """Can verification be left out? Raises UsageError."""
    if options.tls_ca:
        raise UsageError("--tls-no-verify: leaves --tls-ca nothing to do; leave one of them out")
    if over_grpc := [flag(name) for name in secure if name.endswith("_grpc_url")]:
        raise UsageError(
            f"--tls-no-verify: gRPC cannot leave verification out; give --tls-ca in its place, or leave"
            f" {over_grpc[0]} out"
        )


def check_files(security: Security) -> None:
    """Can the files be read, and are they what they should be? Raises UsageError."""
    for name, path in zip(FILES, (security.ca, security.cert, security.key), strict=True):
        try:
            if path:
                open(path, "rb").close()
        except OSError as error:
            raise UsageError(f"{flag(name)} {path}: cannot be read ({error.strerror}); {PEM}") from error
    for name, path in (("tls_ca", security.ca), ("tls_client_cert", security.cert)):
        if path and fault(lambda path=path: new_context(Security(ca=path))):  # type: ignore[misc]
            raise UsageError(f"{flag(name)} {path}: holds no certificate; {PEM}")
    if not security.cert:
        return
    wrong = fault(lambda: new_context(Security(cert=security.cert, key=security.key, verify=False)))
    if "MISMATCH" in wrong:
        raise UsageError(
            f"--tls-client-key {security.key}: is not the key of {security.cert}; name the one that is"
        )
    if wrong:
        raise UsageError(f"--tls-client-key {security.key}: holds no private key without a passphrase; {PEM}")


def fault(make: Callable[[], ssl.SSLContext]) -> str:
    """What OpenSSL has against it, or nothing."""
    try:
        make()
    except ssl.SSLError as error:
        return error.reason or "unreadable"
    return ""
