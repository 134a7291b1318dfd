"""An HTTP server that takes pictures by POST, sleeps, and answers with a row of float32 for each.

python answers.py HOST PORT --dimension N [--ms N]

A body has as many pictures as data URLs. Each answer says in `Server-Timing` how long it computed. GET is
answered with 200 and nothing.
"""

from __future__ import annotations

import argparse
import array
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

LARGEST_HEAD_BYTES = 1 << 16
PICTURE = b"data:image/"
KEEP = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"


def row_of(dimension: int) -> bytes:
    """A row of which only the first number is not 0, so that its length is 1."""
    return (array.array("f", [1.0]) + array.array("f", bytes(4 * (dimension - 1)))).tobytes()


def answer(rows: bytes, ms: float) -> bytes:
    """Head and body."""
    head = f"{KEEP}Server-Timing: compute;dur={ms:g}\r\nContent-Length: {len(rows)}\r\n\r\n"
    return head.encode() + rows


def body_length(head: bytes) -> int:
    """What the request's head says of its body's bytes.

    >>> body_length(b"POST / HTTP/1.1\\r\\nContent-Length: 12\\r\\n\\r\\n")
    12
    """
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def handler(row: bytes, ms: float) -> Handler:
    """How a connection is served, one request after the other."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(body_length(head))
                if head.startswith(b"GET"):
                    writer.write(f"{KEEP}Content-Length: 0\r\n\r\n".encode())
                else:
                    await asyncio.sleep(ms / 1e3)
                    writer.write(answer(row * body.count(PICTURE), ms))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    return serve


async def listen(options: argparse.Namespace) -> None:
    """Serve for ever."""
    row = row_of(options.dimension)
    server = await asyncio.start_server(
        handler(row, options.ms), options.host, options.port, limit=LARGEST_HEAD_BYTES
    )
    await server.serve_forever()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--ms", type=float, default=2.0)
    asyncio.run(listen(parser.parse_args(argv)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
