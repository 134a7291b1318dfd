"""A TCP forwarder with one fault: it reads requests slowly, or writes an answer's head and body apart.

python shim.py HOST PORT SERVER_HOST:PORT [--read-bytes-per-s N] [--receive-buffer N] [--split-answers]

Of the standard library only, in a process of its own, with the kernel's sockets as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

READ_BYTES, CONNECTIONS = 1 << 16, 256
HEAD_END = b"\r\n\r\n"


@dataclass
class Pace:
    """How fast bytes are taken, all connections together; a rate of 0 is no limit."""

    bytes_per_s: float
    free_s: float = field(default=0.0)

    async def take(self, count: int) -> None:
        """Return once so many bytes more may be read."""
        if not self.bytes_per_s:
            return
        now = asyncio.get_running_loop().time()
        self.free_s = max(self.free_s, now) + count / self.bytes_per_s
        await asyncio.sleep(self.free_s - now)


async def send_up(client: socket.socket, server: socket.socket, pace: Pace) -> None:
    """Requests, as fast as the pace allows."""
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(client, READ_BYTES):
        await loop.sock_sendall(server, data)
        await pace.take(len(data))


async def send_down(server: socket.socket, client: socket.socket, split: bool) -> None:
    """Answers; where they are split, a write ends with the head."""
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(server, READ_BYTES):
        head, found, body = data.partition(HEAD_END)
        for part in (head + found, body) if split else (data,):
            if part:
                await loop.sock_sendall(client, part)


async def serve_one(client: socket.socket, place: tuple[str, int], pace: Pace, split: bool) -> None:
    """One connection, with one of its own to the server, until either side closes."""
    loop = asyncio.get_running_loop()
    server = socket.socket()
    server.setblocking(False)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Nagle's algorithm holds a short second write back until the first is acknowledged.
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if split else 1)
    with client, server:
        ways: list[asyncio.Task[None]] = []
        try:
            await loop.sock_connect(server, place)
            ways.append(loop.create_task(send_up(client, server, pace)))
            ways.append(loop.create_task(send_down(server, client, split)))
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            return
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def serve(options: argparse.Namespace) -> None:
    """Accept connections for ever."""
    host, _, port = options.server.rpartition(":")
    pace = Pace(options.read_bytes_per_s)
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if options.receive_buffer:
            # Connections inherit it, and their window never grows beyond it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer)
        listening.bind((options.host, options.port))
        listening.listen(CONNECTIONS)
        listening.setblocking(False)
        while True:
            client, _ = await loop.sock_accept(listening)
            task = loop.create_task(serve_one(client, (host, int(port)), pace, options.split_answers))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


def main(argv: Sequence[str] | None = None) -> int:
    """Forward until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("server")
    parser.add_argument("--read-bytes-per-s", type=float, default=0.0)
    parser.add_argument("--receive-buffer", type=int, default=0)
    parser.add_argument("--split-answers", action="store_true")
    asyncio.run(serve(parser.parse_args(argv)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
