"""Bytes compressed by gzip or deflate, and unpacked up to a bound."""

import zlib
from collections.abc import Mapping

ALGORITHMS = ("gzip", "deflate")
"""`deflate` is the zlib format, over HTTP (RFC 9110, 8.4.1.2) and gRPC alike."""
WINDOW: Mapping[str, int] = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
DEFAULT_LEVEL = zlib.Z_DEFAULT_COMPRESSION


def deflated(data: bytes | memoryview, algorithm: str, level: int = DEFAULT_LEVEL) -> bytes:
    """The data compressed.

    >>> inflated(deflated(b"tensor" * 99, "gzip"), "gzip", 594) == b"tensor" * 99
    True
    """
    made = zlib.compressobj(level, zlib.DEFLATED, WINDOW[algorithm])
    return made.compress(data) + made.flush()


def inflated(data: bytes | bytearray | memoryview, algorithm: str, largest: int) -> bytes:
    """The inverse, of an answer; no memory is set aside for more than `largest` bytes. Raises ValueError."""
    if algorithm not in WINDOW:
        raise ValueError(f"an answer in the encoding {algorithm!r:.40}, which was not asked for")
    made = zlib.decompressobj(WINDOW[algorithm])
    try:
        found = made.decompress(data, largest + 1)
    except zlib.error as error:
        raise ValueError(f"a compressed answer that is broken ({error})") from None
    if len(found) > largest:
        raise ValueError(f"a compressed answer of more than {largest:,} bytes")
    if not made.eof or made.unused_data:
        raise ValueError(f"a compressed answer that {'goes on after its end' if made.eof else 'is cut off'}")
    return found
