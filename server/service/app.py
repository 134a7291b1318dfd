"""The service: images in, embeddings out, and where the time went. A gateway where its model is elsewhere."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from numpy.typing import NDArray

from server.errors import NotYet, Refusal, not_loaded
from server.hardware.machine import machine_id
from server.hardware.nvml import read_gpus
from server.service import openapi
from server.service.auth import OPEN, Authorized
from server.service.decode import parse, prepare
from server.service.metrics import Metrics
from server.service.request import CLOSE, SHED, Admission, Pool, drop_body, read_body, while_wanted
from server.settings import Settings, decode_threads

LOADING = "the model is still loading"
STOPPING = "the service was stopped before the answer was ready: send the request again"
AGAIN = ": try again when GET /readyz answers 200"
RETRY_S = 0.2


class Embedder(Protocol):
    """Images to embeddings. `load` comes first; both are called from one thread only, save in a gateway.

    One whose model is elsewhere may also have a `close()`, which ends the calls to it that are under way.
    """

    model: str
    weights: str
    weights_sha256: str
    dim: int
    device: str

    def load(self) -> None:
        """Make the model and warm it up."""

    def embed(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 [n, 3, 224, 224] to L2-normalised float32 [n, dim], in the same order."""
        ...


class Service:
    """One model behind three pools of threads: many decode, one computes, one writes replies.

    In a gateway, as many threads wait for the upstream as it may have calls in flight.
    """

    def __init__(self, embedder: Embedder, settings: Settings) -> None:
        self.embedder = embedder
        self.settings = settings
        self.metrics = Metrics(parts=settings.parts)
        self.admission = Admission(settings.at_once, settings.max_queue)
        self.ready = False
        self.waiting = LOADING
        self.failure = ""
        self.load_ns = 0
        self._decoders = Pool(decode_threads(), "decode")
        self._compute = Pool(settings.at_once, "compute")
        # Its own thread: behind the decoders an answer would wait for other requests' images.
        self._writer = Pool(1, "reply")

    async def load(self, on_failure: Callable[[Exception], None]) -> None:
        """Load and warm the model on a thread that will use it; an error is kept, and told."""
        while not (self.ready or self.failure):
            try:
                self.load_ns = (await self._compute.run(self.embedder.load)).took_ns
                self.ready = True
            except NotYet as error:
                self.waiting = str(error)
                await asyncio.sleep(RETRY_S)
            except Exception as error:
                self.failure = not_loaded(error)
                on_failure(error)

    async def embed(self, body: bytes) -> Response:
        """Answer one request and say how long each part took.

        `queue` is its waits for a decoding and for a computing thread. In no part: its way through the
        event loop, receiving the body, and writing and sending the reply.
        """
        decoding = await self._decoders.run(prepare, body, self.settings)
        # While it waits for the model, a request holds its pixels and no longer its body.
        del body
        prepared = decoding.value
        computing = await self._compute.run(self.embedder.embed, prepared.pixels)
        queue_ns = decoding.waited_ns + computing.waited_ns
        parts = self._parts(prepared.decode_ns, prepared.preprocess_ns, queue_ns, computing.took_ns)
        reply = (await self._writer.run(write_reply, computing.value, self.embedder.model, parts)).value
        self.metrics.succeeded(len(computing.value), parts)
        self._note(decoding.took_ns, computing.took_ns)
        return reply

    async def null(self, body: bytes) -> Response:
        """Answer as `embed` would, but without looking at an image or asking the model: a request's floor.

        As there, a decoding thread parses the body; that the texts are base64 images is not checked.
        """
        parsing = await self._decoders.run(parse, body, self.settings.max_batch)
        parts = self._parts(parsing.took_ns, 0, parsing.waited_ns, 0)
        answer = unit_vectors(len(parsing.value), self.embedder.dim)
        self._note(parsing.took_ns, 0)
        return (await self._writer.run(write_reply, answer, "null", parts)).value

    def status(self) -> dict[str, object]:
        """What stands behind the service, and whether it is ready."""
        embedder, settings = self.embedder, self.settings
        upstream = {"address": settings.upstream, "model": settings.upstream_model}
        # A gateway loads nothing, and how many instances compute behind it is the upstream's to say.
        load = {"load_s": self.load_ns / 1e9} if self.ready else {}
        own = {"instances": 1, "precision": settings.precision, **load}
        return {
            "status": "ready" if self.ready else "failed" if self.failure else "loading",
            **({} if self.ready else {"detail": self.failure or self.waiting}),
            "model": embedder.model,
            "weights": embedder.weights,
            "weights_sha256": embedder.weights_sha256,
            "dim": embedder.dim,
            "device": embedder.device,
            "machine": machine_id(),
            **({"gateway": True, "upstream": upstream} if settings.upstream else own),
        }

    def _parts(self, *took_ns: int) -> dict[str, int]:
        return dict(zip(self.settings.parts, took_ns, strict=True))

    async def answer(
        self, request: Request, work: Callable[[bytes], Coroutine[Any, Any, Response]]
    ) -> Response:
        """What `work` makes of a body; whether the request is taken is decided before its body is read."""
        try:
            if not self.ready:
                raise Refusal(503, self.failure or self.waiting + AGAIN)
            self.admission.take()
        except Refusal as refusal:
            if refusal.status == SHED:
                self.metrics.shed.inc()
            if not await drop_body(request, self.settings):
                refusal.headers.update(CLOSE)
            raise
        try:
            return await while_wanted(request, work(await read_body(request, self.settings)))
        except asyncio.CancelledError:
            # Only uvicorn cancels requests: at the end of its patience, once it has been told to stop.
            raise Refusal(503, STOPPING, CLOSE) from None
        finally:
            self.admission.leave()

    def _note(self, decode_ns: int, compute_ns: int) -> None:
        each_ns = max(decode_ns / decode_threads(), compute_ns / self.settings.at_once)
        self.admission.answered(each_ns / 1e9)

    def close(self) -> None:
        """Let the threads go; what is computing now is finished first."""
        if close := getattr(self.embedder, "close", None):
            close()
        for pool in (self._decoders, self._compute, self._writer):
            pool.close()


def create_app(
    embedder: Embedder, settings: Settings, on_failure: Callable[[Exception], None] = lambda error: None
) -> FastAPI:
    """The service as an ASGI app; `on_failure` hears of a model that could not be loaded."""
    service = Service(embedder, settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(service.load(on_failure))
        yield
        loading.cancel()
        service.close()

    # A path with one slash more is another path, and its answer 404, not a redirection.
    app = FastAPI(title="inferswarm", lifespan=lifespan, redirect_slashes=False)
    add_routes(app, service)
    app.add_middleware(Authorized, settings=settings)
    if settings.token:
        openapi.demand_token(app.openapi(), OPEN)
    return app


def add_routes(app: FastAPI, service: Service) -> None:
    """Connect the service to its paths."""

    settings = service.settings

    @app.post("/embed", **openapi.embedding(settings))
    async def embed(request: Request) -> Response:
        """Embeddings of images, in the order sent."""
        metrics = service.metrics
        metrics.requests.inc()
        with metrics.in_flight.track_inprogress(), metrics.failures.count_exceptions():
            return await service.answer(request, service.embed)

    # Not counted, save in what was shed: the counters are those of /embed.
    @app.post("/null", **openapi.embedding(settings))
    async def null(request: Request) -> Response:
        """The same without decoding and without the model: what a request costs at least."""
        return await service.answer(request, service.null)

    @app.get("/healthz", responses=openapi.ALIVE)
    async def healthz() -> dict[str, str]:
        """Whether the process answers."""
        return {"status": "alive"}

    @app.get("/readyz", responses=openapi.READY)
    async def readyz() -> Response:
        """Whether the model is loaded, and what it is."""
        return JSONResponse(service.status(), status_code=200 if service.ready else 503)

    # Plain functions run in a thread: NVML may take its time.
    @app.get("/gpu-info", responses=openapi.GPUS)
    def gpu_info() -> dict[str, object]:
        """The GPUs of this host, read now."""
        return {"gpus": [asdict(gpu) for gpu in read_gpus()]}

    @app.get("/metrics", responses=openapi.METRICS)
    def metrics() -> Response:
        """Counters and times in Prometheus' text format."""
        return Response(service.metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.exception_handler(Refusal)
    async def refuse(_: Request, error: Refusal) -> Response:
        headers = {"Retry-After": "1"} if error.status == 503 else {}
        return JSONResponse({"detail": error.detail}, error.status, {**headers, **error.headers})


def write_reply(embeddings: NDArray[np.float32], model: str, parts_ns: dict[str, int]) -> JSONResponse:
    """Embeddings, float32 [n, dim], and the parts' nanoseconds as milliseconds in `Server-Timing`."""
    content = {"embeddings": embeddings.tolist(), "model": model, "dim": embeddings.shape[1]}
    timing = ", ".join(f"{part};dur={took_ns / 1e6:.3f}" for part, took_ns in parts_ns.items())
    return JSONResponse(content, headers={"Server-Timing": timing})


@functools.cache
def unit_vectors(images: int, dim: int) -> NDArray[np.float32]:
    """The same unit vector for each image, float32 [images, dim]."""
    # Written with as many digits as an embedding, which a vector of equal or round numbers is not.
    vector = np.random.default_rng(0).standard_normal(dim)
    return np.broadcast_to((vector / np.linalg.norm(vector)).astype(np.float32), (images, dim))
