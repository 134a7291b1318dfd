"""Thousands of bad bodies: each is refused in one sentence, and then the service is as it was before."""

import contextlib
import json
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bad_input import tried
from tests.server.bodies import GOOD, bodies
from tests.server.running import live

pytestmark = pytest.mark.slow

LIMITS = {"MAX_BATCH": 4, "MAX_BODY_BYTES": 20_000, "MAX_PIXELS": 200_000}
ASKED, RAW = 2000, 300
GROWTH_MIB = 12.0
"""The allocator's own steps, of some MiB each; by 8,000 bodies, 1.5 KB each: none of them is kept."""
DECLARED = (400, 413)
# Of requests that are none.
PARTS = (
    *(b"POST", b"GET", b" ", b"/embed", b"/null", b"HTTP/1.1", b"HTTP/9.9", b"\r\n", b"\r\n\r\n", b":"),
    *(b"Host: a", b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 99999999999999999999"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"5\r\nhello\r\n", b"\x00", b"\xff"),
    *(b"Expect: 100-continue", b"Upgrade: websocket", b"Connection: upgrade", b"Connection: close", b"LONG"),
)


def is_sentence(detail):
    """Whether a client is told in a line what is wrong."""
    return isinstance(detail, str) and 15 < len(detail) < 250 and len(detail.splitlines()) == 1


class Fuzzed:
    """A live service, and the bad bodies that it has refused."""

    def __init__(self, service):
        self.service = service
        self.bad = {}

    def ask(self, path, body):
        status, headers, reply = self.service.request("POST", path, body)
        return status, headers["Content-Type"], reply

    def resident_mib(self):
        return psutil.Process(self.service.process.pid).memory_info().rss / 2**20


@pytest.fixture(scope="module")
def fuzzed():
    with live(**LIMITS) as service:
        yield Fuzzed(service)
        assert service.stop() == (0, "")


def test_every_body_is_answered_or_refused(fuzzed):
    @tried(ASKED)
    @given(bodies, st.sampled_from(["/embed", "/null"]))
    def one(body, path):
        status, kind, reply = fuzzed.ask(path, body)
        assert kind == "application/json"
        if status == 200:
            assert 1 <= len(json.loads(reply)["embeddings"]) <= 4
        else:
            assert status in DECLARED
            assert is_sentence(json.loads(reply)["detail"])
            fuzzed.bad[body, path] = status

    one()
    assert len(fuzzed.bad) >= 1000
    assert set(fuzzed.bad.values()) == set(DECLARED)


def test_what_is_no_http_is_refused_or_closed(fuzzed):
    @tried(RAW)
    @given(st.lists(st.sampled_from(PARTS) | st.binary(max_size=20), max_size=12).map(b"".join))
    def one(data):
        with socket.create_connection(("127.0.0.1", fuzzed.service.port), timeout=20) as held:
            answer = b""
            # It may have closed before all is sent, or with something unread.
            with contextlib.suppress(ConnectionError):
                held.sendall(data.replace(b"LONG", b"x" * 70_000))
                with contextlib.suppress(OSError):
                    held.shutdown(socket.SHUT_WR)
                while chunk := held.recv(10_000):
                    answer += chunk
        assert not answer or answer[9:10] in (b"1", b"2", b"4"), answer

    one()
    assert fuzzed.service.request("GET", "/healthz")[0] == 200


def test_memory_does_not_grow_with_bad_bodies(fuzzed):
    def again(part):
        return Counter(fuzzed.ask(path, body)[0] for body, path in part)

    def rounds(number):
        bad = list(fuzzed.bad) * number
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(again, [bad[i::4] for i in range(4)]), Counter())

    rounds(2)
    before_mib = fuzzed.resident_mib()
    ended = rounds(6)
    assert ended.total() >= 8000
    assert set(ended) == set(DECLARED)
    assert fuzzed.resident_mib() - before_mib < GROWTH_MIB
    status, _, reply = fuzzed.ask("/embed", json.dumps({"images": [GOOD]}))
    assert (status, json.loads(reply)["dim"]) == (200, 3)
