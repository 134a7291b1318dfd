"""A null server of HTTP: reads a request without looking at its body, and answers at once, on one thread.

python -m benchmarks.generating.null_http PORT

`POST /embed` is answered as the project's service answers, any other POST as Triton does. The kernel throws
the bodies away (MSG_TRUNC): they are never copied to this process. Therefore it is
apart from tests/fake_service.py, which reads what it is sent, and is slower than the clients measured here.
"""

from __future__ import annotations

import json
import select
import socket
from contextlib import suppress
from functools import cache

from benchmarks.generating.answers import (
    CONFIG,
    METADATA,
    SERVER,
    batch_of,
    service_answer,
    statistics,
    triton_answer,
)
from benchmarks.generating.children import server_options
from benchmarks.generating.kinds import MODEL

BACKLOG = 4096
HEAD_BYTES, SCRAP_BYTES = 4096, 4 << 20
RECEIVE_BUFFER_BYTES = 4 << 20
"""Asked for once: where bodies are thrown away, the kernel's own widening of the buffer lags behind."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ABOUT = {
    "/v2": SERVER,
    f"/v2/models/{MODEL}": METADATA,
    f"/v2/models/{MODEL}/versions/1": METADATA,
    f"/v2/models/{MODEL}/config": CONFIG,
    f"/v2/models/{MODEL}/versions/1/config": CONFIG,
}


class Connection:
    """One client: what has come of its head, how much of its body is to come, and the answer then."""

    __slots__ = ("answer", "head", "left", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.head, self.left, self.answer = b"", 0, b""


class Server:
    """All connections, in one epoll loop."""

    made = Connection

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._scrap = bytearray(SCRAP_BYTES)
        self._connections: dict[int, Connection] = {}
        self._epoll = select.epoll()
        self.served = 0

    def serve(self) -> None:
        """Until killed."""
        self._listening.setblocking(False)
        self._epoll.register(self._listening, select.EPOLLIN)
        while True:
            for number, _ in self._epoll.poll():
                if number == self._listening.fileno():
                    self._accept()
                else:
                    self._turn(self._connections[number])

    def _accept(self) -> None:
        try:
            sock, _ = self._listening.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._connections[sock.fileno()] = self.made(sock)
        self._epoll.register(sock, select.EPOLLIN)

    def _turn(self, client: Connection) -> None:
        try:
            open_still = self._read(client)
        except BlockingIOError:
            return
        except OSError:
            open_still = False
        if not open_still:
            self._epoll.unregister(client.sock)
            del self._connections[client.sock.fileno()]
            client.sock.close()

    def _read(self, client: Connection) -> bool:
        """Take what has come; False at the connection's end. Raises BlockingIOError for "no more yet"."""
        if not client.left:
            got = client.sock.recv(HEAD_BYTES)
            if not got:
                return False
            client.head += got
            if b"\r\n\r\n" not in client.head:
                return True
            self._take_head(client)
        while client.left:
            discarded = client.sock.recv_into(self._scrap, min(client.left, SCRAP_BYTES), socket.MSG_TRUNC)
            if not discarded:
                return False
            client.left -= discarded
        client.sock.sendall(client.answer)
        return True

    def _take_head(self, client: Connection) -> None:
        head, _, begun = client.head.partition(b"\r\n\r\n")
        client.head = b""
        size, path = content_length(head), head.split(b" ", 2)[1].decode("latin-1")
        if head.startswith(b"POST"):
            client.answer, client.left = infer_answer(path, size), size - len(begun)
            self.served += 1
            if b"100-continue" in head:
                client.sock.sendall(CONTINUE)
        else:
            client.answer = about(path, self.served)


def content_length(head: bytes) -> int:
    """The size that a head declares, 0 where it declares none.

    >>> content_length(b"POST / HTTP/1.1\\r\\nInference-Header-Content-Length: 9\\r\\ncontent-length: 12")
    12
    """
    _, _, after = head.lower().partition(b"\r\ncontent-length:")
    return int(after.partition(b"\r")[0] or 0)


@cache
def infer_answer(path: str, size: int) -> bytes:
    """The answer to a POST with a body of that size."""
    return service_answer(1) if path == "/embed" else triton_answer(batch_of(size))


def about(path: str, served: int) -> bytes:
    """What a client asks before it sends: readiness (an empty 200), the model, how many were served."""
    content = statistics(served) if path.endswith("/stats") else ABOUT.get(path)
    body = b"" if content is None else json.dumps(content).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def main() -> None:
    """Serve until killed."""
    address = ("127.0.0.1", server_options(__doc__))
    with suppress(KeyboardInterrupt), socket.create_server(address, backlog=BACKLOG) as listening:
        Server(listening).serve()


if __name__ == "__main__":
    main()
