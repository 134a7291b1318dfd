"""URLs of endpoints: which kind of server, where it is, and what is behind the port; no secret is quoted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from swarm.errors import UsageError
from swarm.options.addresses import NO_USER, Place, has_user, place_of
from users.endpoint import Protocol
from users.redact import redacted

SERVICE, RPC, TRITON, V2 = "service", "rpc", "triton", "v2"
"""The backends of HTTP and gRPC services that files describe, and of servers that describe themselves."""
SCHEMES: Mapping[str, tuple[str, Protocol]] = {
    "http": (SERVICE, "http"),
    "https": (SERVICE, "http"),
    "grpc": (RPC, "grpc"),
    "grpcs": (RPC, "grpc"),
    **{f"{kind}+{wire}": (kind, "http") for kind in (TRITON, V2) for wire in ("http", "https")},
    **{f"{kind}+{wire}": (kind, "grpc") for kind in (TRITON, V2) for wire in ("grpc", "grpcs")},
}
"""By the scheme the backend, and the protocol."""
DEFAULT_PORTS = {"http": 80, "https": 443}
"""Of services alone: Triton has others."""
MODEL = re.compile(r"/(?!v2/|/)((?:(?!/versions/)[^?#\x00-\x1f\x7f])+?)(?:/versions/([0-9]{1,18}))?/?")
"""A name may have slashes and other letters, as they are or as % and a code."""
OF_MODEL = (MODEL, "/siglip", "names no model; give /MODEL or /MODEL/versions/2 behind the port")
TAILS = {
    SERVICE: (
        re.compile(r"(?:[/?][!\"$-~]*)?"),
        "/embed",
        "has a path that is none; give blanks, # and letters beyond ASCII as % and a code",
    ),
    RPC: (re.compile("/?"), "", "has a path, and gRPC has none; give what is called as method"),
    TRITON: OF_MODEL,
    V2: OF_MODEL,
}
"""By backend what may stand behind the port, an example of it, and what is wrong with all else."""
EXAMPLE = "triton+grpc://gpu-host:8001/siglip"


class Target(NamedTuple):
    """What a URL says. `authority`: its host where it names no port, which Host must not name either."""

    backend: str
    protocol: Protocol
    place: Place
    path: str
    authority: str = ""
    model: str = ""
    version: str = ""


def target_at(field: str, url: str) -> Target:
    """What the URL of an option or a field says. Raises ValueError."""
    if has_user(url):
        raise ValueError(f"{field}: {NO_USER}")
    try:
        return target_of(url)
    except ValueError as error:
        raise ValueError(f"{field}: {redacted(url):.80} {error}") from None


def target_of(url: str) -> Target:
    """What a URL says. Raises ValueError with the end of a sentence on it.

    >>> target_of("v2+https://gpu-host:8080/clip/versions/2")[2:]
    (Place(address='gpu-host:8080', tls=True), '/clip/versions/2', '', 'clip', '2')
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise ValueError(f"has no scheme that is known; give one of {', '.join(SCHEMES)}, such as {EXAMPLE}")
    backend, protocol = SCHEMES[scheme]
    netloc = re.split("[/?]", rest, maxsplit=1)[0]
    behind = rest[len(netloc) :]
    form, tail, fix = TAILS[backend]
    example = f"{scheme}://gpu-host:{8001 if protocol == 'grpc' else 8000}{tail}"
    bare = backend == SERVICE and not re.search(r":[^\]]*$", netloc)
    try:
        place = placed(scheme.rpartition("+")[2], netloc, bare, protocol)
    except UsageError:
        raise ValueError(f"has no sound host and port; give them as in {example}") from None
    if "?" in behind and backend != SERVICE:
        raise ValueError(f"has a query, which only an HTTP service takes; leave it out, as in {example}")
    found = form.fullmatch(behind)
    if not found:
        raise ValueError(f"{fix}, as in {example}")
    model, version = found.groups(default="") if found.re is MODEL else ("", "")
    model = unquote(model)
    if not model.isprintable() or model != model.strip() or "\ufffd" in model:
        raise ValueError(
            f"names a model with characters that cannot be shown; give its name, as in {example}"
        )
    path = f"/{behind}" if behind.startswith("?") else behind
    return Target(backend, protocol, place, path, netloc if bare else "", model, version)


def placed(scheme: str, netloc: str, bare: bool, protocol: Protocol) -> Place:
    """Host and port, which is the scheme's own where the URL is bare of one. Raises UsageError."""
    port = f":{DEFAULT_PORTS[scheme]}" if bare else ""
    return place_of("", f"{scheme}://{netloc}{port}", protocol)
