"""Users: how one request is built, sent, timed and checked. One file per way of sending."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

from users.endpoint import Endpoint
from users.jpeg_http import JpegHttpUser
from users.triton_grpc import TritonGrpcUser
from users.triton_http import TritonHttpUser
from users.triton_json import TritonJsonHttpUser
from users.triton_payloads import (
    TritonJpegGrpcUser,
    TritonJpegHttpUser,
    TritonUint8GrpcUser,
    TritonUint8HttpUser,
)

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
