"""How connections to a target are secured: whom they trust, as whom they come, and with which token."""

import functools
import os
import re
import secrets
import ssl
from dataclasses import dataclass

import gevent.ssl

from users.redact import CONTROL, VARIABLE

PREFIX, SUFFIX = "INFERSWARM_", "TOKEN"
TOKEN = PREFIX + SUFFIX
"""The variable with the bearer token of all targets."""
LONGEST_TOKEN = 4_096
CONTROL_FORM = re.compile(r"[A-Za-z][A-Za-z0-9-]*=[!-~]+")


class SecurityError(Exception):
    """A token or a file that is not as it must be on this host; the text never has a secret in it."""


@dataclass(frozen=True, slots=True)
class Security:
    """Paths of PEM files, and the name of the variable with the token: never what they hold.

    `ca`: the only authorities to trust, in place of the system's. `cert` and `key`: this client's own.
    `verify`: whether the server must prove its name. Each process reads them for itself when it connects.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True
    token: str = ""


OPEN = Security()
"""The system's certificate authorities, no client certificate, no token."""


def new_context(security: Security, *alpn: str) -> ssl.SSLContext:
    """TLS as secured so, on gevent's sockets.

    Raises OSError and ssl.SSLError where the files do not serve.
    """
    made: ssl.SSLContext = gevent.ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Python before 3.11.4 takes a connection that is cut off for one that has ended (gh-95494).
    made.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    if security.ca:
        made.load_verify_locations(security.ca)
    elif security.verify:
        made.load_default_certs()
    if security.cert:
        # Who has no terminal must not be asked for a passphrase.
        made.load_cert_chain(security.cert, security.key, password=lambda: "")
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if not security.verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    return made


context_of = functools.lru_cache(maxsize=16)(new_context)
"""The same, made once, since reading the authorities takes milliseconds."""


def own_variable(server: str) -> str:
    """The variable with the token of one server alone: of a backend's, or of an endpoint by its name.

    >>> own_variable("new.clip-2")
    'INFERSWARM_NEW_CLIP_2_TOKEN'
    """
    return f"{PREFIX}{re.sub('[^A-Z0-9]', '_', server.upper())}_{SUFFIX}"


def variable_of(server: str) -> str:
    """The name of the variable with a server's token, as this process has it; or nothing.

    Without a name it is that of all.
    """
    names = [own_variable(server), TOKEN] if server else [TOKEN]
    return next((name for name in names if os.environ.get(name)), "")


def token_of(security: Security) -> str:
    """The token, or nothing where none is to be sent. Raises SecurityError where it is missing or none."""
    if not security.token:
        return ""
    # The name comes from the worker's master, which may be anyone.
    if not VARIABLE.fullmatch(security.token):
        raise SecurityError(
            f"{security.token!r:.60} is not a variable with a token: those are named {PREFIX}*_{SUFFIX}"
        )
    token = os.environ.get(security.token, "")
    if not token:
        raise SecurityError(f"{security.token} is not set; export the token that the servers accept")
    if len(token) > LONGEST_TOKEN or not re.fullmatch(r"[!-~]+", token):
        raise SecurityError(
            f"{security.token} is not a token: give printable ASCII without spaces, at most {LONGEST_TOKEN:,}"
            " characters"
        )
    return token


def authorization(security: Security) -> dict[str, str]:
    """The header, or gRPC's metadata, that carries the token; empty without one. Raises SecurityError."""
    token = token_of(security)
    return {"authorization": f"Bearer {token}"} if token else {}


def check_here(security: Security) -> None:
    """Raises SecurityError where this process lacks the token or one of the files."""
    token_of(security)
    for path in filter(None, (security.ca, security.cert, security.key)):
        try:
            open(path, "rb").close()
        except OSError as error:
            raise SecurityError(
                f"{path} cannot be read ({error.strerror}); put the same file there, or name another"
            ) from error


def control_secret() -> str:
    """`NAME=VALUE`, which a server demands of those who change it.

    What the environment has, or what only this process and the servers that it starts know.
    """
    return os.environ.get(CONTROL) or _own_secret()


@functools.cache
def _own_secret() -> str:
    return f"inferswarm-control={secrets.token_hex(32)}"


def control_header(prefix: str = "") -> dict[str, str]:
    """What a request carries that changes a server, with `prefix` before its name. Raises SecurityError."""
    given = control_secret()
    if not CONTROL_FORM.fullmatch(given):
        raise SecurityError(f"{CONTROL} is not valid: give NAME=VALUE, as given to tritonserver")
    name, _, value = given.partition("=")
    return {f"{prefix}{name.lower()}": value}
