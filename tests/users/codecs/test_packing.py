"""Bytes packed and unpacked: what is broken, cut off, endless or unknown is no answer."""

import gzip
import random
import zlib

import pytest

from users.codecs.base import PreparedRequest
from users.codecs.packing import ALGORITHMS, deflated, inflated

DATA = bytes(range(256)) * 40
GZIPPED, DEFLATED = gzip.compress(DATA), zlib.compress(DATA)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_packed_is_what_the_standard_library_reads(algorithm: str) -> None:
    packed = deflated(memoryview(DATA), algorithm)
    read = {"gzip": gzip.decompress, "deflate": zlib.decompress}[algorithm]
    assert (read(packed), inflated(packed, algorithm, len(DATA))) == (DATA, DATA)


@pytest.mark.parametrize(
    ("data", "algorithm", "largest", "said"),
    [
        (GZIPPED, "gzip", len(DATA) - 1, "more than 10,239 bytes"),
        (gzip.compress(bytes(1 << 26)), "gzip", 1 << 10, "more than 1,024 bytes"),
        (GZIPPED[:-1], "gzip", 1 << 20, "cut off"),
        (b"", "gzip", 1 << 20, "cut off"),
        (DEFLATED[:30], "deflate", 1 << 20, "cut off"),
        (GZIPPED + b"!", "gzip", 1 << 20, "broken"),
        (GZIPPED + GZIPPED[:-1], "gzip", 1 << 20, "broken"),
        (GZIPPED + GZIPPED, "gzip", 2 * len(DATA) - 1, "more than 20,479 bytes"),
        (DEFLATED + b"!", "deflate", 1 << 20, "goes on after its end"),
        (DEFLATED, "gzip", 1 << 20, "broken"),
        (b"junk", "deflate", 1 << 20, "broken"),
        (GZIPPED[:-6] + b"\0" + GZIPPED[-5:], "gzip", 1 << 20, "broken"),
        (DATA, "br", 1 << 20, "'br', which was not asked for"),
    ],
)
def test_what_cannot_be_unpacked_is_no_answer(data: bytes, algorithm: str, largest: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        inflated(data, algorithm, largest)


def test_members_of_gzip_follow_one_another() -> None:
    assert inflated(bytearray(GZIPPED * 3), "gzip", 3 * len(DATA)) == DATA * 3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_packed_request_gets_its_id_where_it_stands_unpacked(algorithm: str) -> None:
    plain = b'{"id":"0000",' + random.Random(0).randbytes(500)
    request = PreparedRequest(deflated(plain, algorithm), (0,), id_at=7, packing=algorithm)
    named = request.renamed("abcd")
    assert inflated(named.body, algorithm, 1 << 10) == plain.replace(b"0000", b"abcd", 1)
    assert named.sent_bytes == len(named.body)
