"""The messages of gRPC's interoperability tests, compiled from programs/interop.proto."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc  # type: ignore[import-untyped]

PROTO = Path(__file__).parent / "programs" / "interop.proto"
TEST_SERVICE = "grpc.testing.TestService"


@cache
def _pool() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "interop.pb")
        if protoc.main(["protoc", f"-I{PROTO.parent}", f"--descriptor_set_out={made}", str(PROTO)]):
            raise RuntimeError(f"{PROTO.name} does not compile")
        files = descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file
    # A pool of its own, so that whoever has grpcio-testing's messages in the default one may have these, too.
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def message(name: str) -> Any:
    """A message's class, by its name in the package."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"grpc.testing.{name}"))


def path_of(method: str, service: str = TEST_SERVICE) -> str:
    """A method as `:path` has it.

    >>> path_of("EmptyCall")
    '/grpc.testing.TestService/EmptyCall'
    """
    return f"/{service}/{method}"
