"""examples/endpoints: each file is short, asks as its server is documented, and reads what that answers."""

import base64
import email
import email.policy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from swarm.targets.endpoint_file import read_endpoint
from tests.pictures import jpegs
from users.backends.registry import codec_of
from users.codecs.declared.http import DeclaredHttp
from users.endpoint import Endpoint
from users.inputs.images import ImageSet
from users.tls import OPEN

FOLDER = Path(__file__).parents[2] / "examples" / "endpoints"
FILES = sorted(path.stem for path in FOLDER.glob("*.toml"))
DISCOVERED = {"mlserver"}
"""Whose servers say the rest."""
VARIABLES = ("TORCHSERVE_KEY", "VERTEX_TOKEN", "HF_TOKEN")
IMAGES = ImageSet(jpegs(2), "test", texts=("a cat", "a dog"))
ROWS = [[0.5, -1.0, 0.25], [2.0, 0.125, -4.0]]
CLIP = "openai/clip-vit-base-patch32"

Request = Callable[[Sequence[bytes]], Any]
Answer = Callable[[Sequence[Sequence[float]]], Any]


@dataclass
class Case:
    """What a server is sent for these pictures, and what it answers with these vectors.

    `most`: how many items its file lets a request hold, 0 for any number.
    """

    path: str
    most: int
    request: Request
    answer: Answer
    headers: dict[str, str] = field(default_factory=dict)


def encoded(jpeg: bytes) -> str:
    return base64.b64encode(jpeg).decode()


def data_url(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{encoded(jpeg)}"


def openai(rows: Sequence[Sequence[float]]) -> dict[str, Any]:
    """As OpenAI answers, the last row first, as it may come."""
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return {"object": "list", "model": "m", "data": data[::-1], "usage": usage}


def form(*fields: tuple[str, str, str, bytes]) -> list[tuple[str, str, str, bytes]]:
    return list(fields)


def file(name: str, jpeg: bytes) -> tuple[str, str, str, bytes]:
    return name, "image.jpg", "image/jpeg", jpeg


IMMICH = b'{"clip": {"visual": {"modelName": "ViT-B-32__openai", "options": {}}}}'
CASES = {
    "infinity": Case(
        "/embeddings",
        32,
        lambda jpegs: {"model": CLIP, "modality": "image", "input": [data_url(one) for one in jpegs]},
        openai,
    ),
    "vllm-messages": Case(
        "/v1/embeddings",
        1,
        lambda jpegs: {
            "model": CLIP,
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": data_url(jpegs[0])}}]}
            ],
        },
        openai,
    ),
    "vllm-cohere": Case(
        "/v2/embed",
        0,
        lambda jpegs: {
            "model": CLIP,
            "embedding_types": ["float"],
            "images": [data_url(one) for one in jpegs],
        },
        lambda rows: {"id": "x", "embeddings": {"float": rows}, "meta": {}},
    ),
    "sglang": Case(
        "/v1/embeddings",
        0,
        lambda jpegs: {"model": "gme-qwen2-vl", "input": [{"image": encoded(one)} for one in jpegs]},
        openai,
    ),
    "nim-nv-clip": Case(
        "/v1/embeddings",
        0,
        lambda jpegs: {
            "model": "nvidia/nvclip",
            "encoding_format": "float",
            "input": [data_url(one) for one in jpegs],
        },
        openai,
    ),
    "tei": Case(
        "/embed",
        32,
        lambda jpegs: {"inputs": list(IMAGES.texts[: len(jpegs)]), "normalize": True, "truncate": True},
        lambda rows: rows,
    ),
    "clip-as-service": Case(
        "/post",
        0,
        lambda jpegs: {"data": [{"blob": encoded(one)} for one in jpegs], "execEndpoint": "/"},
        lambda rows: {
            "header": None,
            "data": [{"id": "x", "text": None, "embedding": row, "tags": {}} for row in rows],
            "routes": [],
        },
    ),
    "tf-serving-rest": Case(
        "/v1/models/clip:predict",
        0,
        lambda jpegs: {
            "signature_name": "serving_default",
            "instances": [{"b64": encoded(one)} for one in jpegs],
        },
        lambda rows: {"predictions": rows},
    ),
    "kserve-v1": Case(
        "/v1/models/clip:predict",
        0,
        lambda jpegs: {"instances": [{"image": {"b64": encoded(one)}} for one in jpegs]},
        lambda rows: {"predictions": rows},
    ),
    "torchserve": Case(
        "/predictions/clip",
        1,
        lambda jpegs: form(file("data", jpegs[0])),
        lambda rows: {"embedding": rows[0]},
        {"Authorization": "Bearer ${TORCHSERVE_KEY}"},
    ),
    "weaviate": Case(
        "/vectorize",
        0,
        lambda jpegs: {"texts": [], "images": [encoded(one) for one in jpegs]},
        lambda rows: {"textVectors": [], "imageVectors": rows},
    ),
    "immich": Case(
        "/predict",
        1,
        lambda jpegs: form(("entries", "", "", IMMICH), file("image", jpegs[0])),
        lambda rows: {"clip": json.dumps(rows[0]), "imageHeight": 224, "imageWidth": 224},
    ),
    "sagemaker": Case(
        "/invocations",
        1,
        lambda jpegs: jpegs[0],
        lambda rows: {"embedding": rows[0]},
        {"Content-Type": "application/x-image"},
    ),
    "vertex": Case(
        "/v1/projects/p/locations/r/endpoints/1:predict",
        0,
        lambda jpegs: {"instances": [{"image": {"b64": encoded(one)}} for one in jpegs]},
        lambda rows: {"predictions": rows, "deployedModelId": "1"},
        {"Authorization": "Bearer ${VERTEX_TOKEN}"},
    ),
    "hf-endpoint": Case(
        "/",
        1,
        lambda jpegs: {"inputs": encoded(jpegs[0])},
        lambda rows: {"embedding": rows[0]},
        {"Authorization": "Bearer ${HF_TOKEN}"},
    ),
    "ours": Case(
        "/embed",
        0,
        lambda jpegs: {"images": [encoded(one) for one in jpegs]},
        lambda rows: {"embeddings": rows, "model": "openclip_vit_b32", "dim": 3},
    ),
    "litserve": Case(
        "/predict", 1, lambda jpegs: {"image": encoded(jpegs[0])}, lambda rows: {"embedding": rows[0]}
    ),
    "bentoml": Case("/embed", 1, lambda jpegs: form(file("image", jpegs[0])), lambda rows: rows[0]),
    "mosec": Case("/inference", 1, lambda jpegs: {"image": jpegs[0]}, lambda rows: {"embedding": rows[0]}),
    "ray-serve": Case("/embed", 1, lambda jpegs: jpegs[0], lambda rows: {"embedding": rows[0]}),
}


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "x" * 8)
    monkeypatch.delenv("INFERSWARM_TOKEN", raising=False)


def endpoint(name: str) -> Endpoint:
    return read_endpoint(name, str(FOLDER / f"{name}.toml"), OPEN)


def read(body: bytes, content_type: str) -> Any:
    """What a server finds in a request."""
    if content_type == "application/json":
        return json.loads(body)
    if content_type == "application/msgpack":
        return msgpack.unpackb(body)
    if not content_type.startswith("multipart/form-data; "):
        return body
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get_filename() or "",
            str(part.get("Content-Type", "")),
            part.get_payload(decode=True),
        )
        for part in email.message_from_bytes(head + body, policy=email.policy.HTTP).iter_parts()
    ]


def test_all_files_are_known() -> None:
    assert set(FILES) == {*CASES, *DISCOVERED}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_short_and_says_what_it_was_held_against(name: str) -> None:
    lines = (FOLDER / f"{name}.toml").read_text().splitlines()
    assert len(lines) <= 15
    comments = " ".join(line for line in lines if line.startswith("# "))
    assert lines[0].startswith("# ")
    held = r"\bRun\b|Checked against .*(source|documentation).*; not run\.|General knowledge; not run\."
    assert re.search(held, comments), comments


@pytest.mark.parametrize("name", sorted(DISCOVERED))
def test_a_file_of_a_server_that_says_the_rest(name: str) -> None:
    made = endpoint(name)
    assert (made.backend, made.protocol, made.address, made.model) == ("v2", "http", "127.0.0.1:8080", "clip")
    assert made.settings == {"asked": {"prepare": "clip"}}


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_request_is_as_documented(name: str) -> None:
    made, case = endpoint(name), CASES[name]
    assert (made.path, made.contract.max_batch, dict(made.headers)) == (case.path, case.most, case.headers)
    codec = codec_of(made)
    assert isinstance(codec, DeclaredHttp)
    for batch in (1, 2) if case.most != 1 else (1,):
        prepared = codec.prepare(IMAGES, tuple(range(batch)))
        content_type = prepared.headers.get("Content-Type", "")
        assert read(bytes(prepared.body), content_type) == case.request(IMAGES.jpegs[:batch])
    assert ("Content-Type" in prepared.headers) == ("Content-Type" not in case.headers)


@dataclass
class Came:
    """An answer."""

    body: bytes
    headers: dict[str, str]


@pytest.mark.parametrize("name", sorted(CASES))
def test_its_answer_is_read(name: str) -> None:
    case = CASES[name]
    codec = codec_of(endpoint(name))
    for batch in (1, 2) if case.most != 1 else (1,):
        body = json.dumps(case.answer(ROWS[:batch])).encode()
        found = codec.vectors(Came(body, {"content-type": "application/json"}))
        assert np.array_equal(found, np.array(ROWS[:batch], np.float32))


def test_what_is_special_of_some() -> None:
    assert endpoint("kserve-v1").authority == "clip.default.example.com"
    assert (endpoint("vertex").tls, endpoint("vertex").address) == (True, "vertex.example:443")
    assert endpoint("tei").payload == "text"
    stated = {"x-queue-time": "3", "x-inference-time": "40", "x-tokenization-time": "1", "x-total-time": "45"}
    expected = {"queue": 3_000_000, "compute": 40_000_000, "preprocess": 1_000_000}
    assert codec_of(endpoint("tei")).server_ns(Came(b"", stated)) == expected
    timing = Came(b"", {"server-timing": "queue;dur=2"})
    assert codec_of(endpoint("ours")).server_ns(timing) == {"queue": 2_000_000}
    assert endpoint("ours").space == "openclip_vit_b32"
