"""What the null servers answer: a correct embedding for anything, in the very form of the real servers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.generating.kinds import JPEG_MODEL, MODEL

EMBEDDING_SIZE, LARGEST_BATCH, PICTURE_BYTES = 512, 32, 602_112
DATE = "Thu, 01 Jan 1970 00:00:00 GMT"
TIMING = "decode;dur=1.204, preprocess;dur=1.873, queue;dur=0.091, compute;dur=4.512"
CONFIG: dict[str, Any] = {
    "name": MODEL,
    "platform": "",
    "backend": "python",
    "max_batch_size": LARGEST_BATCH,
    "input": [{"name": "input", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}],
    "output": [{"name": "embedding", "data_type": "TYPE_FP32", "dims": [EMBEDDING_SIZE]}],
}
METADATA = {
    "name": MODEL,
    "versions": ["1"],
    "platform": "python",
    "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 224, 224]}],
    "outputs": [{"name": "embedding", "datatype": "FP32", "shape": [-1, EMBEDDING_SIZE]}],
}
JPEG_CONFIG = {
    **CONFIG,
    "name": JPEG_MODEL,
    "input": [{"name": "input", "data_type": "TYPE_STRING", "dims": [1]}],
}
JPEG_METADATA = {
    **METADATA,
    "name": JPEG_MODEL,
    "inputs": [{"name": "input", "datatype": "BYTES", "shape": [-1, 1]}],
}
SERVER = {"name": "triton", "version": "2.51.0", "extensions": ["binary_tensor_data", "statistics"]}


@cache
def embedding() -> NDArray[np.float32]:
    """The one embedding, float32 of shape [512] and length 1, with as many digits as a real one."""
    vector = np.random.default_rng(0).standard_normal(EMBEDDING_SIZE)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def rows(batch: int) -> NDArray[np.float32]:
    """The same embedding for each picture, float32 of shape [batch, 512]."""
    return np.ascontiguousarray(np.broadcast_to(embedding(), (batch, EMBEDDING_SIZE)))


def service_answer(batch: int) -> bytes:
    """As server/service/app.py writes it and uvicorn sends it."""
    content = {"embeddings": rows(batch).tolist(), "model": MODEL, "dim": EMBEDDING_SIZE}
    body = json.dumps(content, separators=(",", ":")).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ndate: {DATE}\r\nserver: uvicorn\r\nserver-timing: {TIMING}\r\n"
        f"content-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
    )
    return head.encode() + body


def triton_answer(batch: int) -> bytes:
    """As tritonserver answers a request that asks for binary outputs."""
    raw = rows(batch).tobytes()
    output = {"name": "embedding", "datatype": "FP32", "shape": [batch, EMBEDDING_SIZE]}
    outputs = [{**output, "parameters": {"binary_data_size": len(raw)}}]
    content = {"model_name": MODEL, "model_version": "1", "outputs": outputs}
    json_head = json.dumps(content, separators=(",", ":")).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
        f"Inference-Header-Content-Length: {len(json_head)}\r\n"
        f"Content-Length: {len(json_head) + len(raw)}\r\n\r\n"
    )
    return head.encode() + json_head + raw


def batch_of(body_bytes: int) -> int:
    """How many pictures a body of float32 tensors holds; the JSON or protobuf around them is small."""
    return max(1, body_bytes // PICTURE_BYTES)


def statistics(served: int, model: str = MODEL) -> dict[str, Any]:
    """Triton's statistics of a model, with the requests it has served as the one thing that it counts."""
    names = ("success", "queue", "compute_input", "compute_infer", "compute_output")
    each = {name: {"count": served, "ns": served} for name in names}
    none = {name: {"count": 0, "ns": 0} for name in ("fail", "cache_hit", "cache_miss")}
    stats = {
        "name": model,
        "version": "1",
        "last_inference": 0,
        "inference_count": served,
        "execution_count": served,
        "inference_stats": {**each, **none},
        "batch_stats": [],
    }
    return {"model_stats": [stats]}
