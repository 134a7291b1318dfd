"""What first answers show of an endpoint of any model, and the sentence where they do not fit it."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import gevent
import numpy as np
import pytest

from swarm.errors import UsageError
from swarm.targets import preflight
from swarm.targets.preflight import (
    First,
    check_agreement,
    check_odd_picture,
    check_pair,
    odd_picture,
    verdict,
)
from tests.pictures import image_set
from tests.presets import preset
from tests.swarm.wsgi import serving
from tests.users.inputs.test_pictures import JPEGS
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

IMAGES = image_set(3)
FILES = Contract((Input("image", "BYTES", (1,), "jpeg"),))
Rows = Callable[[list[str]], list[list[float]]]
FIRST = base64.b64encode(IMAGES.jpegs[0]).decode()


def vector(image: str) -> list[float]:
    """Three numbers of no certain length, the same for the same picture."""
    return [float(byte) for byte in hashlib.sha256(image.encode()).digest()[:3]]


def each(images: list[str]) -> list[list[float]]:
    return [vector(image) for image in images]


def unit(images: list[str]) -> list[list[float]]:
    return [[number / float(np.linalg.norm(row)) for number in row] for row in each(images)]


@contextmanager
def answering(rows: Rows, **more: Any) -> Iterator[Endpoint]:
    """An endpoint that is described by nobody's preset, whose server answers so."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        images = json.loads(environ["wsgi.input"].read())["images"]
        found = rows(images)
        start("200 OK" if found else "422 Too many", [("Content-Type", "application/json")])
        return [json.dumps({"embeddings": found}).encode()]

    with serving(answer) as address:
        made = Endpoint("mine", "service", "http", "jpeg", address, codec="embed", space="any")
        yield replace(made, **{"contract": FILES, **more})


@pytest.mark.parametrize(("rows", "length_1"), [(each, False), (unit, True)])
def test_dimension_and_length_are_learned_from_the_first_answer(rows: Rows, length_1: bool) -> None:
    with answering(rows) as endpoint:
        first = verdict(endpoint, IMAGES, print)
    assert (first.endpoint.contract.dimension, first.endpoint.contract.unit) == (3, length_1)
    assert replace(first.endpoint, contract=FILES) == endpoint, "all else is as it was"
    assert first.embedding.shape == (3,)
    assert first.took_ns > 0


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (replace(FILES, dimension=4), "shape (1, 3) for 1 item, not 4 numbers each"),
        (replace(FILES, unit=True), "an embedding whose length is not 1"),
    ],
)
def test_what_was_declared_must_be_so(declared: Contract, said: str) -> None:
    with answering(each, contract=declared) as endpoint, pytest.raises(UsageError) as caught:
        verdict(endpoint, IMAGES, print)
    name = f"--endpoint mine {endpoint.address}"
    assert str(caught.value) == f"{name}: does not answer as expected to POST /embed (bad-reply: {said})"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([[0, 0, 0]], "answers with an all-zero vector; fix what it serves"),
        (
            [[1, 2, 3]] * 2,
            "does not answer as expected to POST /embed (bad-reply: shape (2, 3) for 1 item)",
        ),
        ([], "answers POST /embed with HTTP 422 {"),
    ],
)
def test_a_first_answer_that_is_no_vector(answer: list[list[float]], said: str) -> None:
    with answering(lambda images: answer) as endpoint, pytest.raises(UsageError) as caught:
        verdict(endpoint, IMAGES, print)
    assert str(caught.value).startswith(f"--endpoint mine {endpoint.address}: {said}")


def test_what_does_not_compute_may_answer_with_zeros() -> None:
    with answering(lambda images: [[0, 0, 0]], computes=False) as endpoint:
        assert not verdict(endpoint, IMAGES, print).embedding.any()


@pytest.mark.parametrize("score", [0.0, 1.0, -1.0, 0.995])
def test_a_score_is_no_vector_of_a_length(score: float) -> None:
    with answering(lambda images: [[score]]) as endpoint:
        contract = verdict(endpoint, IMAGES, print).endpoint.contract
    assert (contract.dimension, contract.unit) == (1, False)


def test_reversed_scores_are_another_order() -> None:
    with answering(lambda images: [[vector(image)[0] / 255] for image in images][::-1]) as endpoint:
        first = verdict(endpoint, IMAGES, print)
        with pytest.raises(UsageError, match="the first of two rows is not the first item's"):
            check_pair(first, IMAGES, print, 0.999)
    other = replace(first, embedding=first.embedding + np.float32(0.1))
    with pytest.raises(UsageError, match="gives another embedding"):
        check_agreement([first, other], 0.999)
    check_agreement([first, replace(first, embedding=first.embedding * np.float32(1.001))], 0.999)


@pytest.mark.parametrize("at", [0, 1])
def test_a_picture_that_servers_read_otherwise_is_named(at: int) -> None:
    plain, odd = JPEGS["plain"][0], JPEGS["turned"][0]
    images = ImageSet(
        (odd, plain) if at == 0 else (plain, odd, plain), "test", names=("a.jpg", "b.jpg", "c.jpg")
    )

    def turning(given: list[str]) -> list[list[float]]:
        """As `each`, but that the odd picture becomes another."""
        return [vector(image)[::-1] if base64.b64decode(image) == odd else vector(image) for image in given]

    with answering(each) as one, answering(turning, name="other") as other:
        firsts = [verdict(endpoint, images, print) for endpoint in (one, other)]
        if at:
            check_agreement(firsts, 0.999, odd_picture(images, 0))
        checks = [
            partial(check_agreement, firsts, 0.999, odd_picture(images, 0)),
            partial(check_odd_picture, firsts, images, print, 0.999),
        ]
        with pytest.raises(UsageError) as caught:
            checks[at]()
        same = [firsts[0], replace(firsts[0], endpoint=replace(one, name="same"))]
        check_agreement(same, 0.999, odd_picture(images, 0))
        check_odd_picture(same, images, print, 0.999)
    said = str(caught.value)
    assert f"{'ab'[at]}.jpg is to be turned, as its EXIF data say" in said
    assert "weights" not in said


def test_a_refusal_is_shown_whole_with_what_was_guessed() -> None:
    words = f"at the beginning {'x' * 900} \x1b[31mand at the end"

    def refuse(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("500 No", [("Content-Type", "text/plain")])
        return [words.encode()]

    contract = Contract((Input("INPUT0", "BYTES", (1,), "text"),), guesses=("Input INPUT0 is a guess.",))
    made = Endpoint("mine", "service", "http", "text", "", codec="embed", contract=contract)
    with serving(refuse) as address, pytest.raises(UsageError) as caught:
        verdict(replace(made, address=address), IMAGES, print)
    said = str(caught.value)
    assert words.replace("\x1b", "\\x1b") in said
    assert said.endswith("Input INPUT0 is a guess.")
    assert " picture" not in said
    # What was typed is shortened.
    assert len(str(UsageError("x" * 10_000))) <= 400


def test_a_slow_first_answer_is_announced_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(images: list[str]) -> list[list[float]]:
        gevent.sleep(0.1)
        return each(images)

    said: list[str] = []
    monkeypatch.setattr(preflight, "ANNOUNCE_S", 0.02)
    with answering(slow) as endpoint:
        first = verdict(endpoint, IMAGES, said.append)
        assert 100_000_000 <= first.took_ns < 5_000_000_000
        assert said == ["mine: still waiting for its first answer at batch 1; it may be building an engine"]
        monkeypatch.setattr(preflight, "LONGEST_S", 0.05)
        with pytest.raises(UsageError, match=r"gives no answer to POST /embed \(timeout"):
            verdict(endpoint, IMAGES, said.append)


def test_two_items_are_two_rows_in_their_order() -> None:
    with answering(each) as endpoint:
        assert check_pair(verdict(endpoint, IMAGES, print), IMAGES, print, 0.999) > 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (lambda images: each(images)[:1], "gives 1 row for two items in one request; set max_batch = 1, or"),
        (lambda images: [vector(image)[: 4 - len(images)] for image in images], "two items in one reque"),
        (lambda images: each(images) if len(images) == 1 else [[0] * 3] * 2, "the first of two rows is n"),
        (lambda images: each(images)[::-1], "the first of two rows is not the first item's (cosine"),
        (lambda images: each(images[:1])[: 2 - len(images)], "answers one item a request, but not two (HTTP"),
        (
            lambda images: each(images) if images == [FIRST] else [],
            "answers the first item, but refuses the second (HTTP 422",
        ),
        (lambda images: each(images * 2)[: 2 * len(images) - 1], "gives 3 rows for two items in one req"),
    ],
)
def test_a_batch_that_is_answered_otherwise_is_refused(rows: Rows, said: str) -> None:
    with answering(rows) as endpoint:
        first = verdict(endpoint, IMAGES, print)
        with pytest.raises(UsageError) as caught:
            check_pair(first, IMAGES, print, 0.999)
    assert str(caught.value).startswith(f"--endpoint mine {endpoint.address}: {said}")
    limits = not said.startswith(("two items", "answers"))
    assert ("set max_batch = 1" in str(caught.value)) is limits


def test_of_what_does_not_compute_the_order_of_rows_is_not_known() -> None:
    with answering(lambda images: each(images)[::-1], computes=False) as endpoint:
        assert check_pair(verdict(endpoint, IMAGES, print), IMAGES, print, 0.999) > 0


ONE = preset("onnx-http", "gpu:1")
OTHER = preset("pytorch-http", "gpu:2")


def first_of(endpoint: Endpoint, *numbers: float) -> First:
    return First(endpoint, np.array(numbers, dtype=np.float32), 1)


def test_vectors_agree_by_their_direction_within_a_space() -> None:
    elsewhere = replace(ONE, name="siglip", space="siglip")
    check_agreement([], 0.999)
    check_agreement([first_of(ONE, 1, 0), first_of(OTHER, 20, 0), first_of(elsewhere, 0, 1, 0)], 0.999)
    check_agreement([first_of(ONE, 1, 0), first_of(OTHER, 3, 4)], 0.6)
    with pytest.raises(UsageError, match=r"cosine 0\.6000"):
        check_agreement([first_of(ONE, 1, 0), first_of(OTHER, 1, 0), first_of(OTHER, 3, 4)], 0.601)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1, 1), "gives another embedding than onnx-http for the same item (cosine 0.7071): serve the same"),
        ((0, 0), "gives another embedding than onnx-http for the same item (cosine nan): serve the same"),
        ((1, 0, 0), "gives 3 numbers and onnx-http 2, but both belong to the space 'openclip_vit_b32': give"),
    ],
)
def test_endpoints_of_one_space_that_differ_are_refused(numbers: tuple[float, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_agreement([first_of(ONE, 1, 0), first_of(OTHER, *numbers)], 0.999)
    assert str(caught.value).startswith(f"pytorch-http {said}")
    assert "(space in a file, or --space pytorch-http=NAME)" in str(caught.value)
