"""An answer's vectors: in the right form, and those of the pictures sent, each row of them."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from users.codecs.base import PreparedRequest
from users.contract import Contract
from users.errors import RequestError
from users.load.check import check_embeddings, check_form, has_unit_rows, similarity
from users.transport.base import Reply

Rows = NDArray[np.float32]
UNIT = Contract(dimension=4, unit=True)
GOLDEN = np.eye(4, dtype=np.float32)
AT = pytest.mark.parametrize("at", range(3))
"""The row of an answer of three that is not like the others."""


def fault_of(check: Callable[..., None], *given: Any) -> str:
    """What is said of an answer; empty where nothing is wrong."""
    try:
        check(*given)
    except RequestError as error:
        return str(error)
    return ""


def form_of(rows: Rows, contract: Contract = UNIT) -> str:
    """What is wrong with the form of an answer to three items."""
    return fault_of(check_form, Reply(rows, 0), 3, contract).removeprefix("bad-reply: ")


def is_of(rows: Rows, indices: Sequence[int], golden: Rows = GOLDEN, least: float = 0.999) -> bool:
    """Whether the rows are those of the pictures at these indices."""
    said = fault_of(check_embeddings, Reply(rows, 0), PreparedRequest(b"", tuple(indices)), golden, least)
    assert said in ("", f"wrong-embedding: cosine below {least:g} with the golden embedding")
    return not said


@AT
@pytest.mark.parametrize(
    ("by", "said", "of_any_length"),
    [
        (1, "", ""),
        *((near, "", "") for near in (0.991, 1.009, -1)),
        *((far, "an embedding whose length is not 1", "") for far in (0.989, 1.011, 0)),
        *((no, *["an embedding that is not finite"] * 2) for no in (math.nan, math.inf)),
    ],
)
def test_each_row_is_finite_and_of_length_1(at: int, by: float, said: str, of_any_length: str) -> None:
    rows = GOLDEN[:3].copy()
    rows[at, at] = by
    assert form_of(rows) == said
    for unit in (None, False):
        assert form_of(rows, Contract(dimension=4, unit=unit)) == of_any_length
    assert has_unit_rows(rows) == (not said)


@pytest.mark.parametrize(
    ("shape", "dimension", "said"),
    [
        ((3, 4), 4, ""),
        ((3, 4), 0, ""),
        ((3, 5), 0, ""),
        ((3, 5), 4, "shape (3, 5) for 3 items, not 4 numbers each"),
        ((2, 4), 4, "shape (2, 4) for 3 items, not 4 numbers each"),
        ((4, 4), 0, "shape (4, 4) for 3 items"),
        ((3, 4, 1), 0, "shape (3, 4, 1) for 3 items"),
        ((12,), 4, "shape (12,) for 3 items, not 4 numbers each"),
    ],
)
def test_a_row_for_each_item(shape: tuple[int, ...], dimension: int, said: str) -> None:
    assert form_of(np.ones(shape, np.float32), Contract(dimension=dimension)) == said


@AT
def test_each_row_is_that_of_its_own_picture(at: int) -> None:
    indices = (2, 0, 3)
    right = GOLDEN[[2, 0, 3]]
    assert is_of(right, indices)
    assert is_of(right * [[5], [0.2], [7]], indices, GOLDEN * 3), "directions are compared, not lengths"
    assert not is_of(right[::-1], indices)
    for row in (GOLDEN[1], -right[at], right[at] * 0, right[at] * np.float32(math.nan)):
        wrong = right.copy()
        wrong[at] = row
        assert not is_of(wrong, indices)
        # One beyond those that are known may be anything.
        assert is_of(wrong, [9 if number == at else index for number, index in enumerate(indices)])


@AT
def test_how_near_it_must_be(at: int) -> None:
    rows = GOLDEN[:3].copy()
    rows[at, 3] = 0.1
    near = 1 / math.sqrt(1.01)
    assert similarity(rows[at], GOLDEN[at]) == pytest.approx(near)
    assert [is_of(rows, range(3), least=near + by) for by in (-1e-6, 1e-6)] == [True, False]
    assert math.isnan(similarity(rows[at], GOLDEN[at] * 0))


def test_single_numbers_are_compared_by_their_values() -> None:
    golden = np.array([[2.0], [-0.004], [0.004], [1.0]], np.float32)
    for wrong in ([2.0, 1.0], [1.0, -2.0], [-1.0, 2.0], [1.0, math.nan], [1.03, 2.0]):
        said = fault_of(check_embeddings, reply_of(wrong), PreparedRequest(b"", (3, 0)), golden, 0.999)
        assert said == "wrong-embedding: a value more than 1 % from the golden one"
    for right in ([1.0, 2.0], [1.009, 1.995]):
        assert not fault_of(check_embeddings, reply_of(right), PreparedRequest(b"", (3, 0)), golden, 0.999)
    assert fault_of(check_embeddings, reply_of([1.1]), PreparedRequest(b"", (3,)), golden, 0.9) == ""
    # Far below the others, which are of another sign at most by rounding.
    assert not fault_of(
        check_embeddings, reply_of([0.004, -0.004]), PreparedRequest(b"", (1, 2)), golden, 0.999
    )


@pytest.mark.parametrize(
    ("one", "other", "least"),
    [(1.0, 1.0, 1.0), (0.0, 0.0, 1.0), (3.0, 3.02, 0.999), (1e-5, -1e-5, 0.999)],
)
def test_scores_that_are_alike(one: float, other: float, least: float) -> None:
    assert similarity(np.float32([one]), np.float32([other])) >= least
    assert similarity(np.float32([one]), np.float32([other + 0.2])) < 0.999


def reply_of(scores: Sequence[float]) -> Reply:
    return Reply(np.array(scores, np.float32).reshape(-1, 1), 0)


@pytest.mark.parametrize("shape", [(3, 0), (0, 4), (0,)])
def test_nothing_is_no_embedding(shape: tuple[int, ...]) -> None:
    assert form_of(np.ones(shape, np.float32), Contract()) == f"an empty output, of shape {shape}"
