"""Users: how one request is built, sent, timed and checked.

A locustfile of your own subclasses JpegHttpUser, TritonHttpUser or TritonGrpcUser; the others are for studies
to import.
"""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import os

# Read when grpc is imported. It would start again in each process that is forked, find its sockets closed,
# and abort: one subprocess in ten ended so before it had begun.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from users.backends.embed_service import JpegHttp
from users.endpoint import Endpoint as Endpoint
from users.load.user import InferenceUser
from users.triton.grpc import TritonGrpc
from users.triton.http import TritonHttp, TritonJsonHttp


class JpegHttpUser(InferenceUser):
    """A user who sends JPEG to a FastAPI service over HTTP."""

    abstract = True
    transport = JpegHttp


class TritonHttpUser(InferenceUser):
    """A user who sends float32 tensors to Triton over HTTP."""

    abstract = True
    transport = TritonHttp


class TritonGrpcUser(InferenceUser):
    """A user who sends float32 tensors to Triton over gRPC."""

    abstract = True
    transport = TritonGrpc


class ServiceUser(JpegHttpUser):
    """Base64 JPEG over HTTP to the FastAPI service, or to the gateway before Triton."""


class TritonBinaryHttpUser(TritonHttpUser):
    """float32 tensors over binary HTTP to Triton."""


class TritonBinaryGrpcUser(TritonGrpcUser):
    """float32 tensors over gRPC to Triton."""


class TritonJsonTensorsHttpUser(InferenceUser):
    """The same tensors as numbers in JSON."""

    transport = TritonJsonHttp


class TritonJpegOverHttpUser(InferenceUser):
    """JPEG files over binary HTTP to Triton, which decodes them: about 10 KB a picture."""

    transport = TritonHttp.of("jpeg")


class TritonJpegOverGrpcUser(InferenceUser):
    """JPEG files over gRPC to Triton, which decodes them: about 10 KB a picture."""

    transport = TritonGrpc.of("jpeg")


class TritonPixelsOverHttpUser(InferenceUser):
    """uint8 pixels over binary HTTP to Triton, which scales them: 150,528 bytes a picture."""

    transport = TritonHttp.of("uint8")


class TritonPixelsOverGrpcUser(InferenceUser):
    """uint8 pixels over gRPC to Triton, which scales them: 150,528 bytes a picture."""

    transport = TritonGrpc.of("uint8")
