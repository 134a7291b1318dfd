"""Users: how one request is built, sent, timed and checked."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import os

# Read when grpc is imported. It would start again in each process that is forked, find its sockets closed,
# and abort: one subprocess in ten ended so before it had begun.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from users.backends.embed_service import JpegHttpUser
from users.backends.triton_grpc import TritonGrpcUser, TritonJpegGrpcUser, TritonUint8GrpcUser
from users.backends.triton_http import (
    TritonHttpUser,
    TritonJpegHttpUser,
    TritonJsonHttpUser,
    TritonUint8HttpUser,
)
from users.endpoint import Endpoint

__all__ = [
    "Endpoint",
    "JpegHttpUser",
    "TritonGrpcUser",
    "TritonHttpUser",
    "TritonJpegGrpcUser",
    "TritonJpegHttpUser",
    "TritonJsonHttpUser",
    "TritonUint8GrpcUser",
    "TritonUint8HttpUser",
]
