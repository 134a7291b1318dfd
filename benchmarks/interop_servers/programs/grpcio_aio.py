"""gRPC's test service on grpcio's server of asyncio.

python -m benchmarks.interop_servers.programs.grpcio_aio PORT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from benchmarks.interop_servers.messages import TEST_SERVICE
from benchmarks.interop_servers.programs.grpcio_sync import CODES
from benchmarks.interop_servers.programs.rules import INITIAL, METHODS, TRAILING, Answer, echoed


def answered(rule: Callable[[bytes], Answer]) -> Callable[[bytes, Any], Awaitable[bytes]]:
    """A method by its rule."""

    async def method(body: bytes, context: Any) -> bytes:
        came = list(context.invocation_metadata())
        await context.send_initial_metadata(echoed(INITIAL, came))
        context.set_trailing_metadata(echoed(TRAILING, came))
        answer = rule(body)
        await asyncio.sleep(answer.after_s)
        if answer.code:
            await context.abort(CODES.get(answer.code, grpc.StatusCode.UNKNOWN), answer.text)
        return answer.body

    return method


async def main() -> None:
    """Serve until killed."""
    handlers = {name: grpc.unary_unary_rpc_method_handler(answered(rule)) for name, rule in METHODS.items()}
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TEST_SERVICE, handlers),))
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
