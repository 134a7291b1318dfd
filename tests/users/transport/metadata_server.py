"""A gRPC server of grpcio's that answers each call with its metadata `x-…` and its traceparent."""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    """All methods."""

    def service(self, call: Any) -> Any:
        """The method of any name."""
        return grpc.unary_unary_rpc_method_handler(told)


def told(request: bytes, context: Any) -> bytes:
    """Names and values, as Python writes them."""
    own = ("x-", "traceparent")
    return repr([tuple(one) for one in context.invocation_metadata() if one.key.startswith(own)]).encode()


def main() -> None:
    """Serve at the port that is the one argument, until it is ended."""
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((Echo(),))
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
