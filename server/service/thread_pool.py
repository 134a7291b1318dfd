"""A pool of threads that says how long each piece of work waited for one, and how long it took."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


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
