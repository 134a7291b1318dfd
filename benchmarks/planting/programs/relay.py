"""A relay before a server, which delays bytes or holds requests up, and reports nothing of it.

python relay.py HOST PORT SERVER_HOST:PORT [--delay-ms N | --hold-ms N]

Of the standard library only, in a process of its own, with the kernel's sockets as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Sequence

CHUNK, CONNECTIONS = 1 << 18, 256
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
Forward = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Reads what a client sends, and writes it to the server."""


def main(argv: Sequence[str] | None = None) -> int:
    """Relay until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("server")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="how long bytes wait once they were read")
    parser.add_argument("--hold-ms", type=float, default=0.0, help="how long each HTTP request has the relay")
    options = parser.parse_args(argv)
    forward = in_turn(options.hold_ms / 1e3) if options.hold_ms else later(options.delay_ms / 1e3)
    asyncio.run(relay(options.host, options.port, options.server, forward))
    return 0


async def relay(host: str, port: int, server: str, forward: Forward) -> None:
    """One connection to the server for each of a client's; what the server sends is passed on at once."""
    server_host, _, server_port = server.rpartition(":")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(server_host, int(server_port), limit=CHUNK)
        ways = (forward(reader, to_server), pass_on(from_server, writer))
        try:
            await asyncio.gather(*ways)
        except (OSError, EOFError):
            pass  # one end has closed, and the other has nobody left to talk to
        finally:
            to_server.close()
            writer.close()

    started = await asyncio.start_server(connected, host, port, limit=CHUNK, backlog=CONNECTIONS)
    async with started:
        await started.serve_forever()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Whatever comes, as it comes."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.close()


def later(delay_s: float) -> Forward:
    """Bytes are read as they come, so that TCP sees no delay, and are passed on a while later."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        if not delay_s:
            return await pass_on(reader, writer)
        while data := await reader.read(CHUNK):
            loop.call_later(delay_s, writer.write, data)
        loop.call_later(delay_s, writer.close)
        return None

    return forward


def in_turn(hold_s: float) -> Forward:
    """HTTP requests are read whole; each with a body then has the relay to itself for a while."""
    turn = asyncio.Lock()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            if body:
                async with turn:
                    await asyncio.sleep(hold_s)
            writer.write(head + body)
            await writer.drain()

    return forward


if __name__ == "__main__":
    sys.exit(main())
