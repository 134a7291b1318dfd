"""What the service wants of a connection: the whole body in time, and somebody who waits for the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from server.errors import Refusal
from server.settings import Settings

MAX_DROPPED = 4
CLOSE = {"Connection": "close"}
"""For a client whose body is left unread: what it goes on sending is no request."""
T = TypeVar("T")


async def read_body(request: Request, settings: Settings) -> bytes:
    """The whole body; Refusal where it is too long, whatever its headers say, or too slow."""
    max_bytes = settings.max_body_bytes
    chunks: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(settings.max_receive_s):
            async for chunk in request.stream():
                length += len(chunk)
                if length <= max_bytes:
                    chunks.append(chunk)
                # Too much is read on and dropped, within reason: who still sends does not read our answer.
                elif length > MAX_DROPPED * max_bytes:
                    break
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the whole body had arrived") from None
    except TimeoutError:
        late = f"the body had not arrived within {settings.max_receive_s:g} s: send fewer images a request"
        raise Refusal(408, late, CLOSE) from None
    if length > max_bytes:
        headers = CLOSE if length > MAX_DROPPED * max_bytes else None
        too_long = f"the body is longer than {max_bytes:,} bytes: send fewer images a request"
        raise Refusal(413, too_long, headers)
    return b"".join(chunks)


async def drop_body(request: Request, settings: Settings) -> bool:
    """Read on and keep nothing, within reason, as whoever is still sending does not read our answer.

    Whether the client has sent all.
    """
    length = 0
    try:
        async with asyncio.timeout(settings.max_receive_s):
            async for chunk in request.stream():
                length += len(chunk)
                if length > MAX_DROPPED * settings.max_body_bytes:
                    return False
    # Cancelled where the service stops: then the answer goes out at once.
    except (ClientDisconnect, TimeoutError, asyncio.CancelledError):
        return False
    return True


async def while_wanted(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; Refusal, and no more of it, once a client whose body is read has gone."""
    answer = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise Refusal(400, "the connection was closed before the answer was ready")
        return answer.result()
    finally:
        answer.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
