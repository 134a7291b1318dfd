"""The PyTorch service's way: base64 JPEG in JSON over HTTP, `POST /embed`."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from users.base import InferenceUser
from users.endpoint import Endpoint, Payload
from users.http_client import HttpTransport
from users.images import ImageSet
from users.transport import Prepared, Reply

HEADERS = {"Content-Type": "application/json"}
TIMING = re.compile(r"\s*([\w-]+)\s*;\s*dur=([0-9.]+)")


class JpegHttp(HttpTransport):
    """About 13 KB a picture on the wire: 10 KB of JPEG in base64."""

    payload: ClassVar[Payload] = "jpeg"
    names_model: ClassVar[bool] = False

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> Prepared:
        """JSON `{"images": [base64, …]}`; no id, since the service states its parts with each answer."""
        encoded = [base64.b64encode(images.jpegs[index]).decode("ascii") for index in indices]
        return Prepared(json.dumps({"images": encoded}).encode(), indices, HEADERS)

    def exchange(self, prepared: Prepared) -> Reply:
        """POST and parse."""
        assert self._connection is not None, "open() comes before send()"
        path = "/embed" if self.endpoint.computes else "/null"
        answer = self._connection.post(path, prepared.body, prepared.headers)
        received_ns = time.perf_counter_ns()
        embeddings = np.array(json.loads(answer.body)["embeddings"], dtype=np.float32)
        phases_ns = {**answer.phases_ns, "decode": time.perf_counter_ns() - received_ns}
        return Reply(embeddings, len(answer.body), phases_ns, server_timing(answer.headers))


def server_timing(headers: Mapping[str, str]) -> dict[str, int]:
    """The parts of a `Server-Timing` header in nanoseconds; empty where there is none.

    >>> server_timing({"server-timing": "decode;dur=1.5, compute;dur=40"})
    {'decode': 1500000, 'compute': 40000000}
    """
    header = headers.get("server-timing", "")
    return {name: round(float(value) * 1e6) for name, value in TIMING.findall(header)}


class JpegHttpUser(InferenceUser):
    """A user who sends JPEG to a FastAPI service over HTTP."""

    abstract = True
    transport = JpegHttp
