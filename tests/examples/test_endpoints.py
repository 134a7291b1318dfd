"""examples/endpoints: each file is short, asks as its server is documented, and reads what that answers."""

import base64
import email
import email.policy
import json
import re
from collections.abc import Sequence
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


@dataclass
class Case:
    """What a server is sent for pictures, and what it answers with vectors, as `filled` has them.

    `most`: how many items its file lets a request hold, 0 for any number.
    """

    path: str
    most: int
    request: Any
    answer: Any
    headers: dict[str, str] = field(default_factory=dict)


def filled(made: Any, items: Sequence[dict[str, Any]]) -> Any:
    """With the values of `$names`; a list that has any is repeated for each item."""
    if isinstance(made, str):
        return items[0].get(made, made)
    if isinstance(made, dict):
        return {name: filled(value, items) for name, value in made.items()}
    if isinstance(made, tuple):
        return tuple(filled(value, items) for value in made)
    if isinstance(made, list):
        each = [[item] for item in items] if "$" in str(made) else [items]
        return [filled(value, one) for one in each for value in made]
    return made


def pictures(count: int) -> list[dict[str, Any]]:
    """What a request may have of each picture."""
    texts = [base64.b64encode(jpeg).decode() for jpeg in IMAGES.jpegs[:count]]
    return [
        {"$jpeg": jpeg, "$base64": text, "$url": f"data:image/jpeg;base64,{text}", "$text": caption}
        for jpeg, text, caption in zip(IMAGES.jpegs, texts, IMAGES.texts, strict=False)
    ]


def vectors(count: int) -> list[dict[str, Any]]:
    """What an answer may have of each vector."""
    return [{"$at": at, "$row": row, "$json": json.dumps(row)} for at, row in enumerate(ROWS[:count])]


def file(name: str) -> tuple[str, str, str, str]:
    """A picture as a field of a form."""
    return name, "image.jpg", "image/jpeg", "$jpeg"


def bearer(variable: str) -> dict[str, str]:
    return {"Authorization": f"Bearer ${{{variable}}}"}


OPENAI = {
    "object": "list",
    "data": [{"object": "embedding", "index": "$at", "embedding": "$row"}],
    "model": "m",
    "usage": {"prompt_tokens": 0, "total_tokens": 0},
}
"""Its last row may come first."""
ONE, ALL = {"embedding": "$row"}, {"predictions": ["$row"]}
IMMICH = b'{"clip": {"visual": {"modelName": "ViT-B-32__openai", "options": {}}}}'
MESSAGES = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "$url"}}]}]
JINA = {"data": [{"id": "x", "text": None, "embedding": "$row", "tags": {}}], "header": None, "routes": []}
KSERVE = {"instances": [{"image": {"b64": "$base64"}}]}
TENSORFLOW = {"signature_name": "serving_default", "instances": [{"b64": "$base64"}]}
NVIDIA = {"model": "nvidia/nvclip", "encoding_format": "float", "input": ["$url"]}
COHERE = {"id": "x", "embeddings": {"float": ["$row"]}, "meta": {}}
CASES = {
    "infinity": Case("/embeddings", 32, {"model": CLIP, "modality": "image", "input": ["$url"]}, OPENAI),
    "vllm-messages": Case("/v1/embeddings", 1, {"model": CLIP, "messages": MESSAGES}, OPENAI),
    "vllm-cohere": Case(
        "/v2/embed", 0, {"model": CLIP, "embedding_types": ["float"], "images": ["$url"]}, COHERE
    ),
    "sglang": Case("/v1/embeddings", 0, {"model": "gme-qwen2-vl", "input": [{"image": "$base64"}]}, OPENAI),
    "nim-nv-clip": Case("/v1/embeddings", 0, NVIDIA, OPENAI),
    "tei": Case("/embed", 32, {"inputs": ["$text"], "normalize": True, "truncate": True}, ["$row"]),
    "clip-as-service": Case("/post", 0, {"data": [{"blob": "$base64"}], "execEndpoint": "/"}, JINA),
    "tf-serving-rest": Case("/v1/models/clip:predict", 0, TENSORFLOW, ALL),
    "kserve-v1": Case("/v1/models/clip:predict", 0, KSERVE, ALL),
    "torchserve": Case("/predictions/clip", 1, [file("data")], ONE, bearer("TORCHSERVE_KEY")),
    "weaviate": Case(
        "/vectorize", 0, {"texts": [], "images": ["$base64"]}, {"textVectors": [], "imageVectors": ["$row"]}
    ),
    "immich": Case(
        "/predict",
        1,
        [("entries", "", "", IMMICH), file("image")],
        {"clip": "$json", "imageHeight": 224, "imageWidth": 224},
    ),
    "sagemaker": Case("/invocations", 1, "$jpeg", ONE, {"Content-Type": "application/x-image"}),
    "vertex": Case(
        "/v1/projects/p/locations/r/endpoints/1:predict",
        0,
        KSERVE,
        ALL | {"deployedModelId": "1"},
        bearer("VERTEX_TOKEN"),
    ),
    "hf-endpoint": Case("/", 1, {"inputs": "$base64"}, ONE, bearer("HF_TOKEN")),
    "ours": Case(
        "/embed", 0, {"images": ["$base64"]}, {"embeddings": ["$row"], "model": "openclip_vit_b32", "dim": 3}
    ),
    "litserve": Case("/predict", 1, {"image": "$base64"}, ONE),
    "bentoml": Case("/embed", 1, [file("image")], "$row"),
    "mosec": Case("/inference", 1, {"image": "$jpeg"}, ONE),
    "ray-serve": Case("/embed", 1, "$jpeg", ONE),
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
        assert read(bytes(prepared.body), content_type) == filled(case.request, pictures(batch))
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
        answer = filled(case.answer, vectors(batch))
        if case.answer is OPENAI:
            answer["data"].reverse()
        body = json.dumps(answer).encode()
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
