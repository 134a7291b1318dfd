"""What every request to an endpoint carries: its token, and headers whose values are in the environment."""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import suppress
from string import Template

from users.endpoint import Endpoint
from users.redact import SECRET, VARIABLE, keep_secret
from users.tls import PREFIX, SUFFIX, SecurityError, authorization

ALLOWED = "INFERSWARM_HEADERS"
"""In a worker's own environment: names, separated by commas, of variables that it may send besides tokens."""
BINARY = "-bin"
"""How names end whose values are bytes over gRPC, in base64 on the wire (its PROTOCOL-HTTP2.md)."""
FORM = re.compile(r"[!-~]+(?:[ \t]+[!-~]+)*")


class Sender:
    """Whether this process sends what another one names: a worker's master says what its headers are."""

    is_worker = False


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    """By their names in lower case, as HTTP sends them and gRPC as metadata. Raises SecurityError.

    Values are filled in where they are sent, so that none is kept in a study's files.
    """
    own = {name.lower(): value_of(name, value) for name, value in endpoint.headers}
    if endpoint.protocol == "grpc":
        for name in filter(is_binary, own):
            bytes_of(name, own[name])
    return {**authorization(endpoint.security), **own}


def is_binary(name: str) -> bool:
    """Whether a header's value is bytes over gRPC."""
    return name.lower().endswith(BINARY)


def bytes_of(name: str, value: str) -> bytes:
    """What a value in base64 stands for, padded or not. Raises SecurityError."""
    with suppress(ValueError):
        made = b64decode(value + "=" * (-len(value) % 4))
        padded = b64encode(made).decode()
        if value in (padded, padded.rstrip("=")):
            return made
    raise SecurityError(f"the header {name} has bytes over gRPC, and its value is not base64; give base64")


def check_allowed(header: str, names: Sequence[str]) -> None:
    """Raises SecurityError where a worker's owner has not said that a variable may be sent."""
    allowed = [name.strip() for name in os.environ.get(ALLOWED, "").split(",")]
    for name in names:
        if not VARIABLE.fullmatch(name) and name not in allowed:
            raise SecurityError(
                f"the header {header} has {name} in it, which workers do not send by default; name it"
                f" {PREFIX}…_{SUFFIX}, or export {ALLOWED}={name} for each worker"
            )


def value_of(name: str, value: str) -> str:
    """A header's value, the variables in it filled in. Raises SecurityError where one is not set."""
    try:
        names = Template(value).get_identifiers()
        if Sender.is_worker:
            check_allowed(name, names)
        # Others' values, such as a model's name, are words that stand in a study's files anyway.
        keep_secret(names if SECRET.search(name) else ())
        made = Template(value).substitute(os.environ)
    except KeyError as error:
        raise SecurityError(f"{error.args[0]} is not set, and the header {name} uses it; export it") from None
    except ValueError:
        raise SecurityError(
            f"the header {name} has a $ that does not begin a variable; give ${{NAME}}, or $$ for a dollar"
        ) from None
    if not FORM.fullmatch(made):
        raise SecurityError(f"the header {name} is not a valid header value; give printable ASCII")
    return made
