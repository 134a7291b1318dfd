"""How the texts of options are read; what reads one raises ValueError with what to give."""

import math
import os
import re
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reports.ledger.axes import Topology
from users.tls import Security, new_context

MOST_PER_S = 100_000
PEM = "name a file in PEM form"
Reader = Callable[[str], Any]
MOST = 2**63
INFLUX_TOKEN = "INFERSWARM_INFLUX_TOKEN"
"""The variable with the token of the receiver of --influx-url."""
SIGNALS = ("/v1", "/v1/metrics", "/v1/traces")
"""Ends of paths that are added to the URL of a collector."""


class SecretError(ValueError):
    """A text with a secret in it, which must not be quoted."""


def number(kind: type[float], least: float, most: float = MOST, give: str = "") -> Reader:
    """An int or a float from `least` to `most`; more is a slip of the hand, or fills the memory."""
    give = give or (f"must be at least {least:,}" if most == MOST else f"must be {least:,} to {most:,}")

    def read(text: str) -> float:
        try:
            # Python reads digits of other scripts, too, which cells would not be called by.
            value = kind(text) if text.isascii() else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if not least <= value <= most:
            raise ValueError(f"must be at most {MOST:,}" if MOST < value < math.inf else give)
        return value

    return read


def one_of(*known: str) -> Reader:
    """One of some words."""

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"give one of {', '.join(known)}")
        return text

    return read


def checked(check: Callable[[str], object]) -> Reader:
    """The text without blanks around it, where `check` raises no ValueError."""

    def read(text: str) -> str:
        check(text)
        return text.strip()

    return read


def rates(text: str) -> tuple[float, ...]:
    """`50,100`: 50 and 100 requests a second."""
    try:
        # As cells are called: two of one name would be taken for one run.
        found = tuple(dict.fromkeys(float(f"{float(part):g}") for part in text.split(",") if part.strip()))
    except ValueError:
        found = (math.nan,)
    if not all(0 < rate <= MOST_PER_S for rate in found):
        raise ValueError(f"give requests a second, up to {MOST_PER_S:,}, e.g. 50,100")
    return found


def wholes(of: str, most: int) -> Reader:
    """`1,8`: whole numbers from 1, each once."""

    def read(text: str) -> tuple[int, ...]:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts or not all(
            re.fullmatch(r"[1-9][0-9]{0,5}", part) and int(part) <= most for part in parts
        ):
            raise ValueError(f"give whole numbers of {of} from 1 to {most:,}, e.g. 1,8")
        return tuple(dict.fromkeys(map(int, parts)))

    return read


def topology(text: str) -> Topology:
    """`4` workers, or `4@2`: 4 workers on 2 hosts."""
    found = re.fullmatch(r"([0-9]{1,5})(?:@([0-9]{1,5}))?", text)
    made = Topology(int(found[1]), int(found[2] or 0)) if found else Topology()
    if not made.workers or made.hosts > made.workers:
        raise ValueError("give worker processes, or WORKERS@HOSTS with a worker for each host, e.g. 1,4,4@2")
    return made


def path_or_tag(text: str) -> str:
    """What is there is kept as it is found from anywhere; all else is a name."""
    return os.path.abspath(text) if os.path.exists(text) else text


def kubernetes_name(text: str) -> str:
    """A name as Kubernetes has them."""
    if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", text):
        raise ValueError("give a Kubernetes name: a to z, 0 to 9, - and .")
    return text


def collector_url(text: str) -> str:
    """Where an OpenTelemetry collector is; signals' paths are added to it. Secrets belong into headers."""
    give = "give a URL such as http://collector:4318, without /v1/metrics"
    try:
        parts = urlsplit(text.strip())
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise ValueError(give) from None
    if "@" in text or parts.query:
        raise SecretError("may hold no user and no query; give OTEL_EXPORTER_OTLP_HEADERS the token")
    if not known or parts.fragment or parts.path.rstrip("/").endswith(SIGNALS):
        raise ValueError(give)
    return text.strip().rstrip("/")


def file_or_stdout(text: str) -> str:
    """`-`, or the place of a file, kept as it is found from anywhere."""
    return text if text == "-" else os.path.abspath(text)


def influx_url(text: str) -> str:
    """Where points are written, database or bucket and all; a user or a token is no part of it."""
    give = "give http://HOST:8086/write?db=NAME or http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET"
    try:
        parts = urlsplit(text.strip())
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        known = known and text.isascii() and text.strip().isprintable() and " " not in text.strip()
        asked = parse_qs(parts.query)
    except ValueError:
        raise ValueError(give) from None
    if "@" in text or {"u", "p", "token"} & asked.keys():
        raise SecretError(f"holds a secret; leave it out, and export the token as {INFLUX_TOKEN}")
    if not known or not parts.path.rstrip("/").endswith(("/write", "/write_lp")) or parts.fragment:
        raise ValueError(give)
    return text.strip()


def readable(text: str) -> str:
    """The place of a file that this process may read."""
    try:
        open(text, "rb").close()
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror}); {PEM}") from error
    return os.path.abspath(text)


def certificates(text: str) -> str:
    """The place of a file with certificates."""
    if fault(Security(ca=readable(text))):
        raise ValueError(f"holds no certificate; {PEM}")
    return os.path.abspath(text)


def fault(security: Security) -> str:
    """What OpenSSL has against the files, or nothing."""
    try:
        new_context(security)
    except ssl.SSLError as error:
        return error.reason or "unreadable"
    return ""
