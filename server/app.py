"""The PyTorch service: images in, embeddings out, and where the time went."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from server.body import read_body, while_wanted
from server.embedder import Embedder
from server.errors import Refusal, not_loaded
from server.gpu import read_gpus
from server.images import parse, prepare
from server.metrics import Metrics
from server.pool import Pool
from server.reply import unit_vectors, write_reply
from server.settings import Settings, decode_threads

LOADING = "the model is still loading: try again when GET /readyz answers 200"


class Service:
    """One model behind three pools of threads: many decode, one computes, one writes replies."""

    def __init__(self, embedder: Embedder, settings: Settings) -> None:
        self.embedder = embedder
        self.settings = settings
        self.metrics = Metrics()
        self.ready = False
        self.failure = ""
        self.load_ns = 0
        self._decoders = Pool(decode_threads(), "decode")
        self._compute = Pool(1, "compute")
        # Its own thread: behind the decoders an answer would wait for other requests' images.
        self._writer = Pool(1, "reply")

    async def load(self) -> None:
        """Load and warm the model on the thread that will use it; an error is kept, and raised again."""
        try:
            self.load_ns = (await self._compute.run(self.embedder.load)).took_ns
        except Exception as error:
            self.failure = not_loaded(error)
            raise
        self.ready = True

    async def embed(self, body: bytes) -> Response:
        """Answer one request and say how long each part took.

        `queue` is its waits for a decoding and for the computing thread. In no part: its way through the
        event loop, receiving the body, and writing and sending the reply.
        """
        if not self.ready:
            raise Refusal(503, self.failure or LOADING)
        decoding = await self._decoders.run(prepare, body, self.settings)
        prepared = decoding.value
        computing = await self._compute.run(self.embedder.embed, prepared.pixels)
        parts = {
            "decode": prepared.decode_ns,
            "preprocess": prepared.preprocess_ns,
            "queue": decoding.waited_ns + computing.waited_ns,
            "compute": computing.took_ns,
        }
        reply = (await self._writer.run(write_reply, computing.value, self.embedder.model, parts)).value
        self.metrics.succeeded(len(computing.value), parts)
        return reply

    async def null(self, body: bytes) -> Response:
        """Answer as `embed` would, but without looking at an image or asking the model: a request's floor.

        As there, a decoding thread parses the body; that the texts are base64 images is not checked.
        """
        if not self.ready:
            raise Refusal(503, self.failure or LOADING)
        parsing = await self._decoders.run(parse, body, self.settings.max_batch)
        parts = {"decode": parsing.took_ns, "preprocess": 0, "queue": parsing.waited_ns, "compute": 0}
        answer = unit_vectors(len(parsing.value), self.embedder.dim)
        return (await self._writer.run(write_reply, answer, "null", parts)).value

    def status(self) -> dict[str, object]:
        """What stands behind the service, and whether it can be used."""
        embedder = self.embedder
        return {
            "status": "ready" if self.ready else "failed" if self.failure else "loading",
            **({"detail": self.failure} if self.failure else {}),
            "model": embedder.model,
            "weights": embedder.weights,
            "weights_sha256": embedder.weights_sha256,
            "dim": embedder.dim,
            "device": embedder.device,
            "instances": 1,
            **({"load_s": self.load_ns / 1e9} if self.ready else {}),
        }

    def close(self) -> None:
        """Let the threads go; what is computing now is finished first."""
        for pool in (self._decoders, self._compute, self._writer):
            pool.close()


def create_app(
    embedder: Embedder, settings: Settings, on_failure: Callable[[Exception], None] = lambda error: None
) -> FastAPI:
    """The service as an ASGI app; `on_failure` hears of a model that could not be loaded."""
    service = Service(embedder, settings)

    async def load() -> None:
        try:
            await service.load()
        except Exception as error:
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
            body = await read_body(request, service.settings.max_body_bytes)
            return await while_wanted(request, service.embed(body))

    # Not counted: the counters are those of /embed.
    @app.post("/null")
    async def null(request: Request) -> Response:
        body = await read_body(request, service.settings.max_body_bytes)
        return await while_wanted(request, service.null(body))

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
