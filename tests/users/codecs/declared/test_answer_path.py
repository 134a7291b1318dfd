"""Where vectors are in answers and how they are written: read rightly, or said where they are not."""

import base64
import io
import json
from typing import Any

import msgpack
import numpy as np
import pytest
from numpy.typing import NDArray

from users.codecs.declared.answer_path import AnswerPath, AnswerReader

ROWS = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
LISTS = ROWS.astype(np.float64).tolist()


def openai(*order: int) -> dict[str, Any]:
    return {"object": "list", "data": [{"index": at, "embedding": LISTS[at]} for at in order]}


def read(answer: Any, vectors: str, dimension: int = 0, **more: Any) -> NDArray[np.float32]:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    made = AnswerReader({"vectors": vectors, **more}, dimension)(bytearray(body))
    assert made.dtype == np.float32
    assert made.ndim == 2
    return made


@pytest.mark.parametrize(
    ("path", "answer", "found"),
    [
        ("data[].embedding", {"data": [{"embedding": [1]}, {"embedding": [2]}]}, [[1], [2]]),
        (" .data[].embedding", {"data": [{"embedding": [1]}]}, [[1]]),
        ("", [1, 2], [[1, 2]]),
        ("[]", [[1], [2]], [[1], [2]]),
        ("[][0]", [[[1], [9]], [[2], [9]]], [[1], [2]]),
        ("[1]", [[1], [2]], [[2]]),
        ("embeddings.float[]", {"embeddings": {"float": [[1], [2]]}}, [[1], [2]]),
        ("outputs[0].data", {"outputs": [{"data": [1, 2]}, {"data": [3]}]}, [[1, 2]]),
        ("a[].b[]", {"a": [{"b": [1]}, {"b": [2, 3]}]}, [1, 2, 3]),
        ("Identity:0.x-y", {"Identity:0": {"x-y": [1]}}, [[1]]),
        ("0", {"0": [1]}, [[1]]),
    ],
)
def test_a_path_finds(path: str, answer: Any, found: list[Any]) -> None:
    assert AnswerPath(path, "answer.vectors")(answer) == found


@pytest.mark.parametrize("path", ["a..b", "a[", "a[x]", "[-1]", "a.", "$.data[*]", "a[1]]", "[]x."])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(
        ValueError, match=r"^answer.vectors: '.*' is not a path; give one such as data\[\].emb"
    ):
        AnswerPath(path, "answer.vectors")


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (
            "data[].embedding",
            {"data": [{"index": 0, "v": 1}]},
            "no 'embedding' in data[0], which has index, v",
        ),
        ("data[].embedding", {"error": "busy"}, "no 'data' in the answer, which has error"),
        ("data[].embedding", {"data": []}, "nothing in data, which is an empty list"),
        ("data[].embedding", {"data": {"embedding": [1]}}, "no [] in data, which has embedding"),
        ("data[].a", {"data": [{"a": 1}, {"b": 1}]}, "no 'a' in data[1], which has b"),
        ("data[2].a", {"data": [{"a": 1}]}, "no [2] in data, which is a list of 1"),
        ("[0]", "text", "no [0] in the answer, which is a text of 4"),
        ("[]", {}, "no [] in the answer, which has nothing"),
        ("a.b", {"a": None}, "no 'b' in a, which is null"),
        ("a.b.c", {"a": {"b": 0.25}}, "no 'c' in a.b, which is 0.25"),
    ],
)
def test_a_path_says_where_it_ends(path: str, answer: Any, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        AnswerPath(path)(answer)
    assert str(caught.value) == f"answer.vectors {path}: {said}"


def test_a_long_list_of_keys_is_cut() -> None:
    with pytest.raises(ValueError) as caught:
        AnswerPath("x", "answer.order")({f"key_number_{at}": at for at in range(400)})
    assert str(caught.value).startswith("answer.order x: no 'x' in the answer, which has key_number_0, ")
    assert str(caught.value).endswith(" …")
    assert len(str(caught.value)) < 130


def test_lists_of_numbers() -> None:
    assert np.array_equal(read(openai(0, 1, 2), "data[].embedding"), ROWS)
    assert np.array_equal(read({"embeddings": LISTS}, "embeddings"), ROWS)
    assert np.array_equal(read(LISTS, "."), ROWS)
    assert np.array_equal(read(LISTS[1], ""), ROWS[1:2])
    assert np.array_equal(read([[1, 2], [3, 4.5]], "[]"), np.array([[1, 2], [3, 4.5]], np.float32))


def test_a_flat_list_is_divided_where_the_dimension_is_known() -> None:
    flat = {"outputs": [{"data": ROWS.astype(float).ravel().tolist()}]}
    assert np.array_equal(read(flat, "outputs[0].data", 8), ROWS)
    assert read(flat, "outputs[0].data").shape == (1, 24)
    assert read(flat, "outputs[0].data", 7).shape == (1, 24)


def test_rows_are_put_in_their_order() -> None:
    made = read(openai(2, 0, 1), "data[].embedding", order="data[].index")
    assert np.array_equal(made, ROWS)
    assert np.array_equal(read(openai(2, 0, 1), "data[].embedding"), ROWS[[2, 0, 1]])
    doubled = {"data": [{"index": 1, "embedding": [1]}, {"index": 1, "embedding": [2]}]}
    with pytest.raises(ValueError, match=r"^answer.order: is \[1, 1\], but there are 2 rows$"):
        read(doubled, "data[].embedding", order="data[].index")


@pytest.mark.parametrize(("dtype", "close"), [("float32", 0), ("float16", 2e-3), ("float64", 0)])
def test_base64(dtype: str, close: float) -> None:
    texts = [base64.b64encode(row.astype(dtype).tobytes()).decode() for row in ROWS]
    texts.append(base64.b64encode(ROWS.astype(dtype).tobytes()).decode())
    for answer, path in (({"a": texts[:-1]}, "a[]"), ({"a": texts[-1]}, "a")):
        found = read(answer, path, 8, encoding="base64", dtype=dtype)
        assert np.allclose(found, ROWS, atol=close, rtol=0)


def test_raw_numbers() -> None:
    assert np.array_equal(read(ROWS.tobytes(), "", 8, encoding="raw"), ROWS)
    assert np.array_equal(read(ROWS[:1].tobytes(), ".", encoding="raw"), ROWS[:1])
    half = ROWS.astype(np.float16)
    assert np.array_equal(read(half.tobytes(), "", 8, encoding="raw", dtype="float16"), half)


def test_messagepack_has_bytes() -> None:
    reader = AnswerReader({"vectors": "rows[].v", "encoding": "raw"})
    body = msgpack.packb({"rows": [{"v": row.tobytes()} for row in ROWS]})
    assert np.array_equal(reader(body, "application/x-msgpack"), ROWS)
    plain = AnswerReader({"vectors": "rows"})(msgpack.packb({"rows": LISTS}), "application/msgpack")
    assert np.array_equal(plain, ROWS)


def npy(array: NDArray[Any]) -> bytes:
    np.save(file := io.BytesIO(), array)
    return file.getvalue()


def test_npy() -> None:
    assert np.array_equal(read(npy(ROWS), "", encoding="npy"), ROWS)
    assert np.array_equal(read(npy(np.asfortranarray(ROWS)), "", encoding="npy"), ROWS)
    assert np.array_equal(read(npy(ROWS[0].astype(np.float64)), "", encoding="npy"), ROWS[:1])
    texts = [base64.b64encode(npy(row)).decode() for row in ROWS]
    assert np.array_equal(read({"data": texts}, "data[]", encoding="npy"), ROWS)


def test_json_in_a_string() -> None:
    answer = {"clip": json.dumps(LISTS[0]), "imageHeight": 4}
    assert np.array_equal(read(answer, "clip", encoding="json-string"), ROWS[:1])
    assert np.array_equal(read([json.dumps(row) for row in LISTS], "[]", encoding="json-string"), ROWS)


def test_nan_is_read_where_json_has_none() -> None:
    made = read(b'{"predictions": [[1.5, NaN], [Infinity, 2]]}', "predictions[]")
    assert np.array_equal(made, [[1.5, np.nan], [np.inf, 2]], equal_nan=True)


@pytest.mark.parametrize(
    ("answer", "vectors", "more", "said"),
    [
        ({"clip": "[0.1]"}, "clip", {}, "clip: is a text of 5, not a list of numbers; fix answer.encoding"),
        ([0.5, 1.5], "[]", {}, "[]: is 0.5, not a list of numbers; fix"),
        ({"a": [[[1.0], [2.0]], [[3.0], [4.0]]]}, "a[]", {}, "a[]: has shape [2, 2, 1], not one vector"),
        ({"a": [[1.0], [2.0, 3.0]]}, "a[]", {}, "a[]: rows have unequal lengths, or are not numbers"),
        ({"a": [[{}]]}, "a[]", {}, "a[]: rows have unequal lengths, or are not numbers"),
        ({"a": [1.0]}, "a", {"encoding": "base64"}, "a: is a list of 1, not a text; fix answer.encoding"),
        ({"a": "0.1, 2"}, "a", {"encoding": "base64"}, "a: is not base64 ("),
        ({"a": "AAAA"}, "a", {"encoding": "base64"}, "a: 3 bytes are not rows of float32; fix answer.dtype"),
        (b"", ".", {"encoding": "raw"}, ".: 0 bytes are not rows of float32; fix answer.dtype"),
        ({"a": "x"}, "a", {"encoding": "raw"}, "a: is a text of 1, not bytes; fix answer.encoding"),
        (b"PK\x03\x04", ".", {"encoding": "npy"}, ".: is not an NPY file; fix answer.encoding"),
    ],
)
def test_what_is_no_vector(answer: Any, vectors: str, more: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(answer, vectors, **more)
    assert str(caught.value).startswith(f"answer.vectors {said}")


def test_npy_of_objects_is_refused() -> None:
    with pytest.raises(ValueError):
        read(npy(np.array([{}, {}], dtype=object)), "", encoding="npy")


def test_npy_that_promises_more_than_it_has() -> None:
    body = npy(ROWS).replace(b"(3, 8), }      ", b"(3, 8000000), }")
    assert b"8000000" in body
    with pytest.raises(ValueError, match="reshape"):
        read(body, "", encoding="npy")


def test_rows_in_one_value_are_as_many_as_they_are() -> None:
    """A matrix for one item: the check of an answer's rows sees that they are too many."""
    assert read({"data": [{"embedding": LISTS}]}, "data[].embedding").shape == (3, 8)


def test_an_answer_that_is_no_json() -> None:
    reader = AnswerReader({"vectors": "a"})
    with pytest.raises(ValueError, match=r"^the answer is not JSON \(text/html\)$"):
        reader(b"<html>\nBusy\n</html>", "text/html")


def test_settings_that_will_not_do() -> None:
    with pytest.raises(ValueError, match=r"^answer.vectors: is missing; give the path"):
        AnswerReader({"encoding": "list"})
    with pytest.raises(ValueError, match=r"^answer.order: an answer with encoding raw has no order; leave"):
        AnswerReader({"vectors": "", "encoding": "raw", "order": "[].index"})
    with pytest.raises(ValueError, match=r"^answer.order: 'a\[' is not a path"):
        AnswerReader({"vectors": "a", "order": "a["})
