"""The programs before and beside a set-up's server: what they forward, how fast, in how many writes."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.planting.peers import answering, program
from benchmarks.planting.programs.shim import send_down
from benchmarks.planting.setup import HERE, Behind, chained

pytestmark = pytest.mark.system

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
NUMBERS = 300


@contextmanager
def server(request_bytes: int) -> Iterator[str]:
    """The address of a server that takes one request of so many bytes and gives ANSWER."""
    with socket.create_server((HERE, 0)) as listening:

        def answer() -> None:
            # The first connection only asks whether somebody listens.
            while True:
                connection, _ = listening.accept()
                with connection:
                    taken = 0
                    while taken < request_bytes and (data := connection.recv(65536)):
                        taken += len(data)
                    if taken == request_bytes:
                        connection.sendall(ANSWER)
                        connection.recv(1)
                        return

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"{HERE}:{listening.getsockname()[1]}"


def asked(port: int, request: bytes) -> tuple[bytes, float]:
    """The answer to a request, and how many seconds it took."""
    began = time.monotonic()
    with socket.create_connection((HERE, port)) as connection:
        connection.sendall(request)
        got = b""
        while len(got) < len(ANSWER) and (data := connection.recv(65536)):
            got += data
    return got, time.monotonic() - began


def test_requests_are_read_at_a_rate(tmp_path: Path) -> None:
    shim = program("shim.py", "--read-bytes-per-s", "1000000", "--receive-buffer", "65536")
    with server(300_000) as behind, shim(Behind((behind,), HERE, tmp_path)) as port:
        got, took_s = asked(port, b"x" * 300_000)
    assert got == ANSWER
    assert 0.2 < took_s < 2


@pytest.mark.parametrize(("split", "parts"), [(True, [ANSWER[:-4], b"body"]), (False, [ANSWER])])
def test_a_split_answer_is_its_head_and_then_its_body(
    split: bool, parts: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes] = []

    async def send(loop: object, client: object, data: bytes) -> None:
        written.append(data)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_sendall", send)
    near, server_end = socket.socketpair()
    with near, server_end, socket.socket() as client:
        near.setblocking(False)
        server_end.sendall(ANSWER)
        server_end.shutdown(socket.SHUT_WR)
        asyncio.run(send_down(near, client, split))
    assert written == parts


def test_an_answer_has_a_row_for_each_picture(tmp_path: Path) -> None:
    body = b'{"input": ["data:image/jpeg;base64,AA==", "data:image/jpeg;base64,AA=="]}'
    front = chained(program("shim.py"), answering(NUMBERS))
    with front(Behind((), HERE, tmp_path)) as port, socket.create_connection((HERE, port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        head, _, rows = connection.recv(1 << 20).partition(b"\r\n\r\n")
        while len(rows) < 2 * 4 * NUMBERS:
            rows += connection.recv(1 << 20)
    assert b"Content-Length: 2400" in head
    assert b"Server-Timing: compute;dur=4" in head
    assert rows[:4] == rows[1200:1204] == b"\x00\x00\x80?"
