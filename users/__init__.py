"""Users: how one request is built, sent, timed and checked. One file per way of sending."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

from users.endpoint import Endpoint
from users.jpeg_http import JpegHttpUser
from users.triton_grpc import TritonGrpcUser
from users.triton_http import TritonHttpUser

__all__ = ["Endpoint", "JpegHttpUser", "TritonGrpcUser", "TritonHttpUser"]
