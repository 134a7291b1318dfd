"""Users: how one request is built, sent, timed and checked.

A study imports EmbeddingUser. A plain locustfile subclasses JpegHttpUser, TritonHttpUser or TritonGrpcUser.
Backend, Facts and register are for a kind of server that is not known yet, Codec for a form of requests.
"""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import os

# Read when grpc is imported. It would start again in each process that is forked, find its sockets closed,
# and abort: one subprocess in ten ended so before it had begun.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from users.backends.base import Backend as Backend
from users.backends.base import Facts as Facts
from users.backends.registry import register as register
from users.codecs.base import Codec as Codec
from users.codecs.registry import register_codec as register_codec
from users.endpoint import Endpoint as Endpoint
from users.load.user import InferenceUser as InferenceUser


class EmbeddingUser(InferenceUser):
    """Who asks the endpoints of a study, whatever their backends."""


class JpegHttpUser(InferenceUser):
    """Sends base64 JPEG over HTTP to the PyTorch service at `host`, of `batch` pictures a request."""

    abstract = True
    asks = "pytorch-http"


class TritonHttpUser(InferenceUser):
    """Sends float32 tensors over binary HTTP to the `model` of a Triton at `host`."""

    abstract = True
    asks = "onnx-http"


class TritonGrpcUser(InferenceUser):
    """Sends float32 tensors over gRPC to the `model` of a Triton at `host`."""

    abstract = True
    asks = "onnx-grpc"
