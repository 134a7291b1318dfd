"""gRPC's test service on grpcio's server with threads.

python -m benchmarks.interop_servers.programs.grpcio_sync PORT
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from benchmarks.interop_servers.messages import TEST_SERVICE
from benchmarks.interop_servers.programs.rules import INITIAL, METHODS, TRAILING, Answer, echoed

THREADS = 16
CODES = {code.value[0]: code for code in grpc.StatusCode}


def answered(rule: Callable[[bytes], Answer]) -> Callable[[bytes, Any], bytes]:
    """A method by its rule."""

    def method(body: bytes, context: Any) -> bytes:
        came = context.invocation_metadata()
        context.send_initial_metadata(echoed(INITIAL, came))
        context.set_trailing_metadata(echoed(TRAILING, came))
        answer = rule(body)
        time.sleep(answer.after_s)
        if answer.code:
            context.abort(CODES.get(answer.code, grpc.StatusCode.UNKNOWN), answer.text)
        return answer.body

    return method


def main() -> None:
    """Serve until killed."""
    handlers = {name: grpc.unary_unary_rpc_method_handler(answered(rule)) for name, rule in METHODS.items()}
    server = grpc.server(ThreadPoolExecutor(THREADS), options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TEST_SERVICE, handlers),))
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
