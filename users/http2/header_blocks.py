"""Header blocks: HPACK (RFC 7541) without its table, so that a block means the same wherever it stands.

A request's is made once. Answers carry no state either, since the table is set to no bytes before the first
request; so each different block is read once, by `hpack`.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType

from hpack import Decoder
from hpack.exceptions import HPACKError

from users.http2.frames import COMPRESSION_ERROR, ProtocolError

POST, HTTP, HTTPS = b"\x83", b"\x86", b"\x87"
"""Whole fields of the static table."""
PATH, AUTHORITY, CONTENT_TYPE, USER_AGENT, NEW_NAME = b"\x04", b"\x01", b"\x0f\x10", b"\x0f\x2b", b"\x00"
"""How a literal begins that enters no table: its name's place in the static one, or that its name follows."""
AGENT = "grpc-python-inferswarm/0.1"
MOST_DIGITS = 8
"""Of grpc-timeout."""
LARGEST_LIST = 1 << 16
"""Bytes of an answer's headers: names, values, and 32 for each (RFC 9113, 6.5.2)."""


def text(value: bytes) -> bytes:
    """A string, not Huffman-coded.

    >>> text(b"te")
    b'\\x02te'
    """
    return length(len(value)) + value


def length(value: int) -> bytes:
    """A string's length, with a prefix of 7 bits.

    >>> length(126).hex(), length(127).hex(), length(300).hex()
    ('7e', '7f00', '7fad01')
    """
    if value < 0x7F:
        return bytes((value,))
    rest, coded = value - 0x7F, b"\x7f"
    while rest >= 0x80:
        coded += bytes((rest & 0x7F | 0x80,))
        rest >>= 7
    return coded + bytes((rest,))


def request_block(
    path: str, authority: str, tls: bool, timeout_s: float, metadata: Mapping[str, str]
) -> bytes:
    """What a call to a method begins with, in the order that gRPC's PROTOCOL-HTTP2.md asks for."""
    named = {"grpc-timeout": timeout_text(timeout_s), "te": "trailers"}
    after = {"grpc-accept-encoding": "identity", **metadata}
    return b"".join((
        POST, HTTPS if tls else HTTP, PATH, text(path.encode()), AUTHORITY, text(authority.encode()),
        literals(named),
        CONTENT_TYPE, text(b"application/grpc"), USER_AGENT, text(AGENT.encode()),
        literals(after),
    ))  # fmt: skip


def literals(fields: Mapping[str, str]) -> bytes:
    """Fields that enter no table."""
    return b"".join(
        NEW_NAME + text(name.lower().encode("latin-1")) + text(value.encode("latin-1"))
        for name, value in fields.items()
    )


def timeout_text(seconds: float) -> str:
    """As grpc-timeout has it.

    >>> timeout_text(60), timeout_text(0.0001), timeout_text(1e6)
    ('60000m', '100u', '1000000S')
    """
    for unit, per_s in (("u", 1e6), ("m", 1e3), ("S", 1.0)):
        count = max(1, round(seconds * per_s))
        if len(str(count)) <= (MOST_DIGITS if unit != "u" else 3):
            return f"{count}{unit}"
    return f"{'9' * MOST_DIGITS}H"


@functools.lru_cache(maxsize=256)
def decoded(block: bytes) -> Mapping[str, str]:
    """The fields of a block; values of one name are joined by commas. Raises ProtocolError.

    It may begin with the table's new size, as it should, or not, as those of some servers.
    """
    try:
        found = Decoder(LARGEST_LIST).decode(block, raw=True)
    except HPACKError as error:
        raise ProtocolError(f"a header block that cannot be read ({error})", COMPRESSION_ERROR) from error
    fields: dict[str, str] = {}
    for raw_name, raw_value in found:
        name, value = raw_name.decode("latin-1"), raw_value.decode("utf-8", "replace")
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return MappingProxyType(fields)
