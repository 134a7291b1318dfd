"""Bytes compressed by gzip or deflate, and unpacked up to a bound."""

import gzip
import io
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
    window = WINDOW[algorithm]
    if algorithm == "deflate" and not has_zlib_head(data):
        window = -zlib.MAX_WBITS  # as some servers send it, and as browsers read it
    made = zlib.decompressobj(window)
    try:
        found = made.decompress(data, largest + 1)
        several = made.unused_data and algorithm == "gzip"
        if several:  # RFC 1952, 2.2: members follow one another; this takes ten times as long for one of them
            found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(largest + 1)
    except (zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"a compressed answer that is broken ({error})") from None
    if len(found) > largest:
        raise ValueError(f"a compressed answer of more than {largest:,} bytes")
    if made.unused_data and not several:
        raise ValueError("a compressed answer that goes on after its end")
    if not made.eof:
        raise ValueError("a compressed answer that is cut off, or broken")
    return found


def has_zlib_head(data: bytes | bytearray | memoryview) -> bool:
    """Whether data begin as the zlib format does (RFC 1950, 2.2)."""
    return len(data) > 1 and data[0] & 15 == zlib.DEFLATED and not (data[0] << 8 | data[1]) % 31


def decoded(body: bytes | bytearray, encodings: str, largest: int) -> bytes | bytearray:
    """A body as its server made it, by its Content-Encoding, asked for or not. Raises ValueError.

    >>> decoded(deflated(b"a vector", "gzip"), "X-GZIP, identity", 8)
    b'a vector'
    """
    for name in reversed(encodings.lower().split(",")):  # the last one was applied last
        algorithm = name.strip().removeprefix("x-")
        if body and algorithm not in ("", "identity"):
            body = inflated(body, algorithm, largest)
    return body
