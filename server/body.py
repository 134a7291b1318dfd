"""What the service wants of a connection: the whole body, and somebody who still waits for the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from server.errors import Refusal

MAX_DROPPED = 4
T = TypeVar("T")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The whole body, or Refusal once it is longer than `max_bytes`, whatever its headers say."""
    chunks: list[bytes] = []
    length = 0
    try:
        async for chunk in request.stream():
            length += len(chunk)
            if length <= max_bytes:
                chunks.append(chunk)
            # Too much is read on and dropped, within reason: who is still sending does not read our answer.
            elif length > MAX_DROPPED * max_bytes:
                break
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the whole body had arrived") from None
    if length > max_bytes:
        raise Refusal(413, f"the body is longer than {max_bytes:,} bytes: send fewer images a request")
    return b"".join(chunks)


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
