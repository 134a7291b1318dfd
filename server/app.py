"""The PyTorch service: images in, embeddings out, and where the time went."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from numpy.typing import NDArray
from starlette.requests import ClientDisconnect

from server.embedder import Embedder
from server.errors import Refusal
from server.gpu import read_gpus
from server.images import Prepared, prepare
from server.metrics import PARTS, Metrics
from server.settings import Settings, decode_threads

MAX_DROPPED = 4
LOADING = "the model is still loading: try again when GET /readyz answers 200"


class Service:
    """One model behind two kinds of threads: many decode, one computes; the event loop only waits."""

    def __init__(self, embedder: Embedder, settings: Settings) -> None:
        self.embedder = embedder
        self.settings = settings
        self.metrics = Metrics()
        self.ready = False
        self._decoders = ThreadPoolExecutor(decode_threads(), thread_name_prefix="decode")
        self._compute = ThreadPoolExecutor(1, thread_name_prefix="compute")

    async def load(self) -> None:
        """Load and warm the model on the thread that will use it."""
        await asyncio.get_running_loop().run_in_executor(self._compute, self.embedder.load)
        self.ready = True

    async def embed(self, body: bytes) -> Response:
        """Answer one request; its parts add up to its time on threads and in their queues."""
        if not self.ready:
            raise Refusal(503, LOADING)
        loop = asyncio.get_running_loop()
        received = time.perf_counter_ns()
        prepared = await loop.run_in_executor(self._decoders, prepare, body, self.settings)
        embeddings, compute_ns = await loop.run_in_executor(self._compute, self._infer, prepared)
        parts = {"decode": prepared.decode_ns, "preprocess": prepared.preprocess_ns, "compute": compute_ns}
        parts["queue"] = max(0, time.perf_counter_ns() - received - sum(parts.values()))
        self.metrics.succeeded(len(embeddings), parts)
        return await loop.run_in_executor(self._decoders, self._reply, embeddings, parts)

    def status(self) -> dict[str, object]:
        """What stands behind the service, and whether it can be used."""
        embedder = self.embedder
        return {
            "status": "ready" if self.ready else "loading",
            "model": embedder.model,
            "weights": embedder.weights,
            "weights_sha256": embedder.weights_sha256,
            "dim": embedder.dim,
            "device": embedder.device,
        }

    def close(self) -> None:
        """Let the threads go; what is computing now is finished first."""
        self._decoders.shutdown(cancel_futures=True)
        self._compute.shutdown(cancel_futures=True)

    def _infer(self, prepared: Prepared) -> tuple[NDArray[np.float32], int]:
        start = time.perf_counter_ns()
        embeddings = self.embedder.embed(prepared.pixels)
        return embeddings, time.perf_counter_ns() - start

    def _reply(self, embeddings: NDArray[np.float32], parts_ns: dict[str, int]) -> Response:
        content = {"embeddings": embeddings.tolist(), "model": self.embedder.model, "dim": self.embedder.dim}
        timing = ", ".join(f"{part};dur={parts_ns[part] / 1e6:.3f}" for part in PARTS)
        return JSONResponse(content, headers={"Server-Timing": timing})


def create_app(
    embedder: Embedder, settings: Settings, on_failure: Callable[[Exception], None] | None = None
) -> FastAPI:
    """The service as an ASGI app; `on_failure` hears of a model that could not be loaded."""
    service = Service(embedder, settings)

    async def load() -> None:
        try:
            await service.load()
        except Exception as error:
            if on_failure is None:
                raise
            on_failure(error)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(load())
        yield
        loading.cancel()
        service.close()

    app = FastAPI(title="inferswarm", lifespan=lifespan)
    add_routes(app, service)
    return app


def add_routes(app: FastAPI, service: Service) -> None:
    """Connect the service to its paths."""

    @app.post("/embed")
    async def embed(request: Request) -> Response:
        metrics = service.metrics
        metrics.requests.inc()
        with metrics.in_flight.track_inprogress(), metrics.failures.count_exceptions():
            return await service.embed(await read_body(request, service.settings.max_body_bytes))

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/readyz")
    async def readyz() -> Response:
        return JSONResponse(service.status(), status_code=200 if service.ready else 503)

    # Plain functions run in a thread: NVML may take its time.
    @app.get("/gpu-info")
    def gpu_info() -> dict[str, object]:
        return {"gpus": [gpu.as_json() for gpu in read_gpus()]}

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.exception_handler(Refusal)
    async def refuse(_: Request, error: Refusal) -> Response:
        headers = {"Retry-After": "1"} if error.status == 503 else {}
        return JSONResponse({"detail": error.detail}, status_code=error.status, headers=headers)


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The whole body, or Refusal once it is longer than `max_bytes`, whatever its headers say."""
    chunks: list[bytes] = []
    length = 0
    try:
        async for chunk in request.stream():
            length += len(chunk)
            if length <= max_bytes:
                chunks.append(chunk)
            # Too much is read on and dropped, within reason: who is still sending does not read our answer.
            elif length > MAX_DROPPED * max_bytes:
                break
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the whole body had arrived") from None
    if length > max_bytes:
        raise Refusal(413, f"the body is longer than {max_bytes:,} bytes: send fewer images a request")
    return b"".join(chunks)
