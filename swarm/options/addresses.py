"""Addresses as they are typed: `host:port`, or a URL whose scheme asks for TLS. No secret is quoted."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from swarm.errors import UsageError

SECURE = frozenset(("https", "grpcs"))
SCHEMES = {"http": ("", "http", "https"), "grpc": ("", "grpc", "grpcs", "http", "https")}
NO_SECRETS = (
    "has a name, a password or a query in it, which would be kept in the study's files; leave it out, and"
    " export a bearer token as INFERSWARM_TOKEN"
)


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


def check_secrets(option: str, url: str) -> None:
    """Raises UsageError where there may be a secret in a URL, without quoting it."""
    if "@" in url or "?" in url:
        raise UsageError(f"{option}: {NO_SECRETS}")
