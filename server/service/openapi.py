"""What /openapi.json says of requests and answers; bodies are parsed by hand (server/service/decode.py)."""

from collections.abc import Mapping
from typing import Any

from server.settings import Settings

Responses = dict[int | str, dict[str, Any]]


def _object(properties: Mapping[str, Any], but: str = "") -> dict[str, Any]:
    """A schema of an object that has all these properties, save perhaps one."""
    required = [name for name in properties if name != but]
    return {"type": "object", "properties": properties, "required": required}


STRING = {"type": "string"}
DETAIL = _object({"detail": {**STRING, "description": "what is wrong, and the fix"}})
REFUSED = {
    400: "the body, or an image in it, is not valid",
    403: "another web page's request",
    408: "the body did not arrive in time",
    413: "too long a body, too many images or pixels, or too long to decode",
    421: "not a name of this machine",
    429: "the limit of requests in flight is reached",
    502: "a gateway's upstream failed",
    503: "the model is not loaded, or the service is stopping",
}
WAIT = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "description": "seconds"}}
STATUS = _object(
    {
        "status": {"enum": ["ready", "loading", "failed"]},
        **dict.fromkeys(("detail", "model", "weights", "weights_sha256"), STRING),
        "dim": {"type": "integer"},
        "device": STRING,
        "precision": STRING,
        "machine": {**STRING, "description": "the same on one machine only, until it restarts"},
    },
    but="detail",
)
GPU_LIST = _object({"gpus": {"type": "array", "items": {"type": "object"}}})


def _json(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


ALIVE: Responses = {200: _json("the process answers", {"type": "object", "required": ["status"]})}
READY: Responses = {200: _json("it is ready", STATUS), 503: _json("it is not ready", STATUS)}
GPUS: Responses = {200: _json("from NVML; none without a GPU", GPU_LIST)}
METRICS: Responses = {200: {"description": "all metrics", "content": {"text/plain": {"schema": STRING}}}}


def demand_token(schema: dict[str, Any], without: tuple[str, ...]) -> None:
    """Have all operations want the bearer token, but for those of the paths `without`."""
    schema.setdefault("components", {})["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values() if path not in without else ():
            operation["security"] = [{"bearer": []}]
            operation["responses"]["401"] = _json("no token, or a wrong one", DETAIL)


def embedding(settings: Settings) -> dict[str, Any]:
    """The operation of /embed and /null, as FastAPI's routes take it."""
    refused: Responses = {status: _json(description, DETAIL) for status, description in REFUSED.items()}
    for status in (429, 503):
        refused[status]["headers"] = WAIT
    vectors = _batch_of({"type": "array", "items": {"type": "number"}}, settings)
    embeddings = _object({"embeddings": vectors, "model": STRING, "dim": {"type": "integer"}})
    answered = _json("an embedding for each image, and `Server-Timing`", embeddings)
    body = {"required": True, "content": {"application/json": {"schema": _images(settings)}}}
    return {"responses": {**refused, 200: answered}, "openapi_extra": {"requestBody": body}}


def _images(settings: Settings) -> dict[str, Any]:
    image = {
        **STRING,
        "contentEncoding": "base64",
        "description": f"a JPEG, PNG or WebP file of at most {settings.max_pixels:,} pixels",
    }
    return _object({"images": _batch_of(image, settings)})


def _batch_of(item: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": settings.max_batch}
