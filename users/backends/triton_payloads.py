"""Triton's other payloads: JPEG files that Triton decodes, and pixels that it scales.

They travel exactly as the float32 tensors do, over the same connections; users.backends.payloads makes
what goes in.
"""

from __future__ import annotations

from typing import ClassVar

from users.backends.triton_grpc import TritonGrpc
from users.backends.triton_http import TritonHttp
from users.endpoint import Payload
from users.load.user import InferenceUser


class TritonJpegHttp(TritonHttp):
    """About 10 KB a picture on the wire: its JPEG file as it is."""

    payload: ClassVar[Payload] = "jpeg"


class TritonJpegGrpc(TritonGrpc):
    """About 10 KB a picture on the wire: its JPEG file as it is."""

    payload: ClassVar[Payload] = "jpeg"


class TritonUint8Http(TritonHttp):
    """150,528 bytes a picture on the wire: uint8 of shape [3, 224, 224]."""

    payload: ClassVar[Payload] = "uint8"


class TritonUint8Grpc(TritonGrpc):
    """150,528 bytes a picture on the wire: uint8 of shape [3, 224, 224]."""

    payload: ClassVar[Payload] = "uint8"


class TritonJpegHttpUser(InferenceUser):
    """A user who sends JPEG files to Triton over HTTP."""

    abstract = True
    transport = TritonJpegHttp


class TritonJpegGrpcUser(InferenceUser):
    """A user who sends JPEG files to Triton over gRPC."""

    abstract = True
    transport = TritonJpegGrpc


class TritonUint8HttpUser(InferenceUser):
    """A user who sends pixels to Triton over HTTP."""

    abstract = True
    transport = TritonUint8Http


class TritonUint8GrpcUser(InferenceUser):
    """A user who sends pixels to Triton over gRPC."""

    abstract = True
    transport = TritonUint8Grpc
