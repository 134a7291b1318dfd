"""What a request needs: a slot, its body in time, a client that waits for the answer, threads."""

import asyncio
import functools
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from starlette.requests import ClientDisconnect, Request

from server.errors import Refusal
from server.settings import Settings

SHED = 429
MAX_RETRY_S = 60
WEIGHT = 0.1
"""The weight of the latest request in the running mean of a request's time."""
MAX_DROPPED = 4
CLOSE = {"Connection": "close"}
"""For a client whose body is not read: what it keeps sending is not a request."""
P = ParamSpec("P")
T = TypeVar("T")


class Admission:
    """Counts requests from before their body is read until they are answered.

    So no more than `at_once + max_queue` bodies are in memory, each of at most `max_body_bytes`, and those
    that decoding threads still hold though their clients have gone.
    """

    def __init__(self, at_once: int, max_queue: int) -> None:
        self._room = at_once + max_queue
        self._taken = 0
        self._each_s = 0.0

    def take(self) -> None:
        """Take a place; Refusal 429 where all are taken."""
        if self._taken >= self._room:
            wait_s = retry_after_s(self._taken, self._each_s)
            raise Refusal(
                SHED,
                f"the limit of requests in flight ({self._taken}) is reached: try again in {wait_s} s",
                {"Retry-After": str(wait_s)},
            )
        self._taken += 1

    def leave(self) -> None:
        """Give the place back."""
        self._taken -= 1

    def answered(self, each_s: float) -> None:
        """Take note of how long the slowest part of the service was busy with one request."""
        self._each_s += (each_s - self._each_s) * (WEIGHT if self._each_s else 1)


def retry_after_s(taken: int, each_s: float) -> int:
    """Whole seconds until those who are under way should be answered: at least 1, at most 60."""
    return min(MAX_RETRY_S, max(1, math.ceil(taken * each_s)))


async def read_body(request: Request, settings: Settings) -> bytes:
    """The whole body; Refusal where it is too long, whatever its headers say, or too slow."""
    max_bytes = settings.max_body_bytes
    try:
        body, length = await _receive(request, settings, max_bytes)
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the whole body had arrived") from None
    except TimeoutError:
        late = f"the body did not arrive within {settings.max_receive_s:g} s: send fewer images per request"
        raise Refusal(408, late, CLOSE) from None
    if length > max_bytes:
        headers = CLOSE if length > MAX_DROPPED * max_bytes else None
        too_long = f"the body is longer than {max_bytes:,} bytes: send fewer images per request"
        raise Refusal(413, too_long, headers)
    return body


async def drop_body(request: Request, settings: Settings) -> bool:
    """Read on and keep nothing, within reason; whether the client has sent all."""
    try:
        _, length = await _receive(request, settings, 0)
    # Cancelled where the service stops: then the answer goes out at once.
    except (ClientDisconnect, TimeoutError, asyncio.CancelledError):
        return False
    return length <= MAX_DROPPED * settings.max_body_bytes


async def _receive(request: Request, settings: Settings, kept: int) -> tuple[bytes, int]:
    """A body's first chunks, of at most `kept` bytes, and the length of all that was read.

    Too much is read on and dropped, within reason: who still sends does not read our answer.
    """
    chunks: list[bytes] = []
    length = 0
    async with asyncio.timeout(settings.max_receive_s):
        async for chunk in request.stream():
            length += len(chunk)
            if length <= kept:
                chunks.append(chunk)
            elif length > MAX_DROPPED * settings.max_body_bytes:
                break
    return b"".join(chunks), length


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


class Done(NamedTuple, Generic[T]):
    """What a function returned, and in nanoseconds its wait for a thread and its time on it."""

    value: T
    waited_ns: int
    took_ns: int


class Pool:
    """Some threads of one name; work that is cancelled before a thread is free is never begun."""

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Done[T]:
        """Call a function on one of the threads; the event loop goes on meanwhile."""
        asked = time.perf_counter_ns()
        call = [functools.partial(function, *args, **kwargs)]

        def work() -> Done[T]:
            entered = time.perf_counter_ns()
            value = call.pop()()
            return Done(value, entered - asked, time.perf_counter_ns() - entered)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except asyncio.CancelledError:
            # A pool keeps cancelled work until a thread comes to it: not with the bodies of all who gave up.
            call.clear()
            raise

    def close(self) -> None:
        """Let the threads go; what they are doing now is finished first."""
        self._executor.shutdown(cancel_futures=True)
