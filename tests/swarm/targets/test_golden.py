"""Golden embeddings by space: of the first endpoint that computes, or of a file."""

import base64
import functools
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swarm.errors import UsageError
from swarm.targets import golden
from swarm.targets.golden import golden_embeddings
from tests.pictures import image_set, jpegs
from tests.presets import preset
from tests.swarm.targets.test_preflight import FILES, FIRST, Rows, answering, each
from users.endpoint import Endpoint
from users.errors import status_error
from users.inputs.images import ImageSet, in_turn
from users.refusals import patient
from users.transport.base import Transport

IMAGES = image_set(3)
ONNX, SERVICE = preset("onnx-http", "gpu:1"), preset("pytorch-http", "gpu:2")
SIGLIP = replace(ONNX, name="siglip", space="siglip", contract=replace(ONNX.contract, dimension=3))
OURS = ONNX.space


def rows(dimension: int, number: float = 1) -> Any:
    return np.full((2, dimension), number, dtype=np.float32)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The endpoints that were asked, each of which answers with ones."""
    found: list[str] = []

    def fetched(endpoint: Endpoint, images: ImageSet, timeout_s: float, say: Any) -> Any:
        found.append(endpoint.name)
        return rows(endpoint.contract.dimension)

    monkeypatch.setattr(golden, "fetched", fetched)
    return found


def test_the_first_endpoint_of_each_space_that_computes_is_asked(asked: list[str]) -> None:
    endpoints = [ONNX.floor(), preset("emulated-http", "gpu:3"), SERVICE, ONNX, SIGLIP]
    found = golden_embeddings(endpoints, IMAGES, 5, "", print)
    assert {space: made.shape for space, made in found.items()} == {OURS: (2, 512), "siglip": (2, 3)}
    assert asked == ["pytorch-http", "siglip"]


def test_what_a_file_has_nobody_is_asked(asked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, siglip=rows(3, 7))
    found = golden_embeddings([ONNX, SIGLIP], IMAGES, 5, str(path), print)
    assert (found["siglip"] == 7).all()
    assert asked == ["onnx-http"]
    np.savez(path, golden=rows(512, 7).astype(np.float64))
    found = golden_embeddings([ONNX, SERVICE], IMAGES, 5, str(path), print)
    assert (found[OURS] == 7).all()
    assert found[OURS].dtype == np.float32


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"golden": rows(3)}, f"'golden' is not a space of this study; they are {OURS}, siglip"),
        (
            {"siglip": rows(4)},
            "'siglip' has shape [2, 4], and its endpoints answer with 3 numbers each; give",
        ),
        ({"siglip": rows(3)[:0]}, "'siglip' has shape [0, 3], and its endpoints answer with 3 numbers each"),
        ({"siglip": rows(3)[0]}, "'siglip' has shape [3], and its endpoints answer with 3 numbers each"),
        ({"siglip": [[1, 1, 1], [0, 0, 0]]}, "'siglip' has rows that are not vectors (all zeros, or not"),
        ({"siglip": [[1, 1, 1], [1, np.nan, 0]]}, "'siglip' has rows that are not vectors (all zeros, or"),
        ({"siglip": np.array([["a"]])}, "cannot be read (could not convert string to float"),
        ({"siglip": np.array([None])}, "cannot be read ("),
        (b"no archive", "cannot be read ("),
        (None, "cannot be read ([Errno 2] No such file or directory"),
    ],
)
def test_a_file_that_does_not_serve(tmp_path: Path, arrays: Any, said: str) -> None:
    path = tmp_path / "g.npz"
    if isinstance(arrays, bytes):
        path.write_bytes(arrays)
    elif arrays:
        np.savez(path, **arrays)
    with pytest.raises(UsageError) as caught:
        golden_embeddings([ONNX, SIGLIP], IMAGES, 5, str(path), print)
    assert str(caught.value).startswith(f"--golden {path}: {said}")


@pytest.mark.parametrize("most", [2, 256])
def test_they_are_asked_for_one_by_one_and_not_without_end(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "MOST", most)
    asked: list[list[str]] = []

    def answer(images: list[str]) -> list[list[float]]:
        asked.append(images)
        return each(images)

    with answering(answer) as endpoint:
        found = golden_embeddings([endpoint], IMAGES, 5, "", print)
    pictures = [base64.b64encode(one).decode() for one in IMAGES.jpegs[:most]]
    assert asked == [[picture] for picture in pictures]
    np.testing.assert_allclose(found["any"], each(pictures))


def test_each_kind_of_a_mix_has_golden_embeddings_however_few_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(golden, "MOST", 5)
    pictures, indices = in_turn([jpegs(40, 8), jpegs(2, 32)])
    mix = ImageSet(pictures, "test", groups=dict(zip(("8", "32"), indices, strict=True)))
    with answering(each) as endpoint:
        found = golden_embeddings([endpoint], mix, 5, "", print)["any"]
    assert [[index for index in own if index < len(found)] for own in mix.groups.values()] == [
        [0, 2, 4],
        [1, 3],
    ]
    sent = [base64.b64encode(pictures[index]).decode() for index in range(5)]
    np.testing.assert_allclose(found, each(sent))


@pytest.mark.parametrize(
    ("answer", "item", "why"),
    [
        (lambda images: [], 1, "HTTP 422"),
        (lambda images: each(images) if images == [FIRST] else [], 2, "HTTP 422"),
        (lambda images: [[1, 1e39, 2]], 1, "bad-reply: an embedding that is not finite"),
    ],
)
def test_an_endpoint_that_does_not_answer_as_it_should_is_named(answer: Rows, item: int, why: str) -> None:
    contract = replace(FILES, dimension=3)
    with answering(answer, contract=contract) as endpoint, pytest.raises(UsageError) as caught:
        golden_embeddings([endpoint], IMAGES, 5, "", print)
    beginning = f"mine {endpoint.address}: no golden embedding of item {item} from it ({why}"
    assert str(caught.value).startswith(beginning)


@pytest.mark.parametrize(("rows", "told"), [(lambda images: [[0.6, 0.8, 0.0]], 1), (each, 0)])
def test_a_model_that_may_not_read_its_items_is_told_of(rows: Rows, told: int) -> None:
    said: list[str] = []
    with answering(rows) as endpoint:
        golden_embeddings([endpoint], IMAGES, 5, "", said.append)
    assert len(said) == told


def limiting(taken: int, again: str, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """From now on each answer but the first `taken` is refused once; the waits that follow."""
    waits: list[float] = []
    asked = itertools.count()
    send = Transport.send

    def refuse(self: Transport, prepared: Any) -> Any:
        number = next(asked)
        if number >= taken and number % 2:
            raise status_error(429, b"slow down", {"retry-after": again})
        return send(self, prepared)

    monkeypatch.setattr(Transport, "send", refuse)
    monkeypatch.setattr(golden, "patient", functools.partial(patient, sleep=waits.append))
    return waits


def test_golden_embeddings_wait_as_a_limiter_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = limiting(0, "2", monkeypatch)
    with answering(each) as endpoint:
        found = golden_embeddings([endpoint], IMAGES, 5, "", print)["any"]
    assert len(found) == 3
    assert waits == [2, 2]


def test_a_limiter_that_asks_for_hours_leaves_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    waits = limiting(1, "7200", monkeypatch)
    with answering(each) as endpoint:
        found = golden_embeddings([endpoint], IMAGES, 5, "", said.append)["any"]
    assert (len(found), waits) == (1, [])
    assert "the first 1 of 3 items" in said[0]
