"""Addresses as they are typed: `host:port`, or a URL whose scheme asks for TLS. No secret is quoted."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from swarm.errors import UsageError
from users.redact import secrets_in

SECURE = frozenset(("https", "grpcs"))
SCHEMES = {"http": ("", "http", "https"), "grpc": ("", "grpc", "grpcs", "http", "https")}
KEPT = "which would be kept in the study's files; leave it out, and export a bearer token as INFERSWARM_TOKEN"
NO_SECRETS = f"has a name, a password or a query in it, {KEPT}"
NO_USER = f"has a name or a password in it, {KEPT}"


@dataclass(frozen=True)
class Place:
    """`host:port`, and whether it is reached over TLS."""

    address: str
    tls: bool = False


def place_of(option: str, url: str, protocol: str = "http") -> Place:
    """The place of a URL with or without its scheme. Raises UsageError.

    >>> place_of("--pytorch-url", "https://gpu-host:8002")
    Place(address='gpu-host:8002', tls=True)
    """
    check_secrets(option, url)
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host, extra = parts.hostname or "", parts.path.strip("/") or parts.fragment
    sound = host.isascii() and host.isprintable() and " " not in host
    # Longer ones, and empty ones, are no parts of a name: the resolver would raise what is no OSError.
    sound = sound and all(0 < len(part) < 64 for part in host.removesuffix(".").split("."))
    if parts.scheme not in SCHEMES[protocol] or not host or not sound or port is None or extra:
        over = f"{protocol}://host:port ({protocol}s for TLS)"
        raise UsageError(f"{option} {url!r}: give host:port or {over}, and no path")
    bracketed = f"[{host}]" if ":" in host else host
    return Place(f"{bracketed}:{port}", parts.scheme in SECURE)


def check_secrets(option: str, url: str, page: bool = False) -> None:
    """Raises UsageError where there may be a secret in a URL, without quoting it.

    `page`: it is that of a page, whose query may have other things in it.
    """
    if "@" in url or (secrets_in(url) if page else "?" in url):
        raise UsageError(f"{option}: {NO_SECRETS}")


def has_user(url: str) -> bool:
    """Whether a name or a password stands before the host; an @ may also be of a path, or of a query.

    >>> has_user("http://me:pw/d@gpu:1"), has_user("https://api.example/run/@cf/baai?for=a@b")
    (True, False)
    """
    rest = url.partition("://")[2] or url
    netloc = re.split("[/?#]", rest, maxsplit=1)[0]
    # A password with a slash in it seems to end before it: what is left is no host with a port.
    return "@" in rest and not re.fullmatch(r"(?:\[[^\]@]*\]|[^:@]*)(?::[0-9]*)?", netloc)
