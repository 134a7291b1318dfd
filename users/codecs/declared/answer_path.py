"""Where the vectors are in a declared endpoint's answers, and how their numbers are written there."""

from __future__ import annotations

import binascii
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
import orjson
from numpy.typing import NDArray

from users.codecs.embed import rows_of

FORM = re.compile(r"\.?(?:[^.\[\]]+|\[\d{0,6}\])(?:\.[^.\[\]]+|\[\d{0,6}\])*")
STEP = re.compile(r"\[(\d*)\]|([^.\[\]]+)")
EACH = ""
"""The step `[]`; other steps are a key or a number."""
MOST_KEYS = 60
"""Characters shown of a list of keys."""
DTYPES: Mapping[str, str] = {"float32": "<f4", "float16": "<f2", "float64": "<f8"}
"""NumPy's names; little-endian."""
ENCODINGS = ("list", "base64", "json-string", "raw", "npy")
NPY = b"\x93NUMPY"

Floats = NDArray[np.float32]


class AnswerPath:
    """A path such as `data[].embedding`, compiled once; called with a parsed answer it gives what is there.

    `[]` walks a list, `[0]` picks one element of it, anything else is the key of an object; nothing, or `.`,
    is the whole. Raises ValueError, which says at which step it ends, and what is there instead.

    >>> AnswerPath("data[].embedding")({"data": [{"embedding": [1, 2]}, {"embedding": [3, 4]}]})
    [[1, 2], [3, 4]]
    """

    def __init__(self, text: str, field: str = "answer.vectors") -> None:
        bare = "" if text.strip() == "." else text.strip()
        if bare and not FORM.fullmatch(bare):
            raise ValueError(
                f"{field}: {text!r:.60} is not a path; give one such as data[].embedding, or . for the whole"
            )
        self.name = f"{field} {bare or '.'}"
        self._steps = [key or (int(at) if at else EACH) for at, key in STEP.findall(bare)]

    @property
    def whole(self) -> bool:
        """Whether it is the whole answer."""
        return not self._steps

    def __call__(self, answer: Any) -> list[Any]:
        """All that it finds, in order: at least one. Raises ValueError."""
        found = [answer]
        try:
            for step in self._steps:
                found = taken(found, step)
        except (LookupError, TypeError):
            found = []
        if not found:
            raise ValueError(f"{self.name}: {self._fault(answer)}")
        return found

    def _fault(self, answer: Any) -> str:
        """Where it ends, and at what."""
        places = [("", answer)]
        for step in self._steps:
            for where, one in places:
                try:
                    taken([one], step)
                except (LookupError, TypeError):
                    named = repr(step) if isinstance(step, str) and step else f"[{step}]"
                    return f"no {named} in {where or 'the answer'}, which {kind_of(one)}"
            if not (after := [place for where, one in places for place in below(where, one, step)]):
                return f"nothing in {places[0][0] or 'the answer'}, which {kind_of(places[0][1])}"
            places = after
        return "finds nothing"


def check_told(told: Mapping[str, Any]) -> None:
    """Raises ValueError where a table `answer` does not say where the vectors are."""
    if "vectors" not in told:
        raise ValueError("answer.vectors: is missing; give the path of the vectors, such as data[].embedding")


def ordered(rows: Floats, places: Sequence[Any]) -> Floats:
    """The rows by the place that each has. Raises ValueError."""
    usual = list(range(len(rows)))
    if places == usual:
        return rows
    if sorted(places) != usual:
        raise ValueError(f"answer.order: is {places!r:.60}, but there are {len(rows)} rows")
    return rows[np.argsort(places)]


def taken(found: Sequence[Any], step: str | int) -> list[Any]:
    """What a step leads to from each value. Raises LookupError and TypeError."""
    if step and isinstance(step, str):
        return [one[step] for one in found]
    made = []
    for one in found:
        if not isinstance(one, list):
            raise TypeError
        made += one if step == EACH else [one[int(step)]]
    return made


def below(where: str, one: Any, step: str | int) -> list[tuple[str, Any]]:
    """Where a step leads to from a value, and what is there."""
    if step == EACH:
        return [(f"{where}[{at}]", value) for at, value in enumerate(one)]
    to = f"{where}[{step}]" if isinstance(step, int) else f"{where}.{step}".lstrip(".")
    return [(to, one[step])]


def kind_of(value: Any) -> str:
    """What a value is, in the words of a person who looks at JSON.

    >>> kind_of({"object": "list", "data": []}), kind_of([1, 2])
    ('has object, data', 'is a list of 2')
    """
    if isinstance(value, dict):
        keys = ", ".join(map(str, value))
        return (
            f"has {keys if len(keys) <= MOST_KEYS else keys[: MOST_KEYS - 2] + ' …'}"
            if keys
            else "has nothing"
        )
    if isinstance(value, list):
        return f"is a list of {len(value)}" if value else "is an empty list"
    if isinstance(value, (str, bytes, bytearray)):
        return f"is {'a text' if isinstance(value, str) else 'bytes'} of {len(value)}"
    return "is null" if value is None else f"is {value!r:.20}"


class AnswerReader:
    """Reads the vectors out of the answers of an endpoint, as the table `answer` of its file says.

    `dimension` is that of the vectors, 0 where it is not known: numbers in one piece are divided by it.
    Raises ValueError, as `FIELD: what is wrong; give …`, if the table is not valid.
    """

    def __init__(self, told: Mapping[str, Any], dimension: int = 0) -> None:
        check_told(told)
        self._path = AnswerPath(told["vectors"])
        self._order = AnswerPath(told["order"], "answer.order") if "order" in told else None
        self._encoding, self._dimension = told.get("encoding", "list"), dimension
        self._dtype = np.dtype(DTYPES[told.get("dtype", "float32")])
        self._bare = self._path.whole and self._encoding in ("raw", "npy")
        if self._bare and self._order:
            raise ValueError(
                f"answer.order: an answer with encoding {self._encoding} has no order; leave it out"
            )
        by_name: dict[str, Callable[[list[Any]], NDArray[Any]]] = {
            "list": self._lists,
            "json-string": lambda found: self._lists([orjson.loads(self._text(one)) for one in found]),
            "base64": lambda found: self._numbers([self._decoded(one) for one in found]),
            "raw": lambda found: self._numbers([self._bytes(one) for one in found]),
            "npy": lambda found: np.concatenate([self._npy(one) for one in found]),
        }
        self._read = by_name[self._encoding]

    def __call__(self, body: bytes | bytearray, content_type: str = "") -> Floats:
        """float32 of shape [rows, dimension]. Raises ValueError, LookupError and TypeError."""
        answer = body if self._bare else parsed(body, content_type)
        found = self._read([answer] if self._bare else self._path(answer))
        if (
            self._dimension
            and len(found) == 1
            and found.size > self._dimension
            and not found.size % self._dimension
        ):
            found = found.reshape(-1, self._dimension)
        made: Floats = found if found.dtype == np.float32 else found.astype(np.float32)
        return made if self._order is None else ordered(made, self._order(answer))

    def _lists(self, found: list[Any]) -> Floats:
        """Each a list of numbers, or one of lists of them."""
        for one in found:
            if not isinstance(one, list):
                raise self._wrong(one, "a list of numbers")
        if len(found) == 1 and found[0] and isinstance(found[0][0], list):
            (found,) = found
        try:
            made = rows_of(found)
        except (ValueError, TypeError):
            raise ValueError(f"{self._path.name}: rows have unequal lengths, or are not numbers") from None
        if made.ndim != 2:
            raise ValueError(f"{self._path.name}: has shape {list(made.shape)}, not one vector per item")
        return made

    def _numbers(self, parts: Sequence[bytes | bytearray]) -> NDArray[Any]:
        """Each the bytes of as many numbers."""
        sizes = {len(part) for part in parts}
        if len(sizes) != 1 or 0 in sizes or max(sizes) % self._dtype.itemsize:
            shown = ", ".join(map(str, sorted(sizes)))
            raise ValueError(
                f"{self._path.name}: {shown} bytes are not rows of {self._dtype.name}; fix answer.dtype"
            )
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        return np.frombuffer(data, self._dtype).reshape(len(parts), -1)

    def _npy(self, one: Any) -> NDArray[Any]:
        """A file of NumPy's, which may be in base64: of one vector, or of rows of them."""
        data = self._decoded(one) if isinstance(one, str) else self._bytes(one)
        if not data.startswith(NPY):
            raise ValueError(f"{self._path.name}: is not an NPY file; fix answer.encoding")
        file = io.BytesIO(data)
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, by_column, dtype = read(file)
        made = np.frombuffer(data, dtype, offset=file.tell()).reshape(shape, order="F" if by_column else "C")
        if made.ndim > 2:
            raise ValueError(f"{self._path.name}: has shape {list(shape)}, not one vector per item")
        return np.atleast_2d(made)

    def _text(self, one: Any) -> str:
        if not isinstance(one, str):
            raise self._wrong(one, "a text")
        return one

    def _bytes(self, one: Any) -> bytes | bytearray:
        if not isinstance(one, (bytes, bytearray)):
            raise self._wrong(one, "bytes")
        return one

    def _decoded(self, one: Any) -> bytes:
        try:
            return binascii.a2b_base64(self._text(one), strict_mode=True)
        except binascii.Error as error:
            raise ValueError(f"{self._path.name}: is not base64 ({error}); fix answer.encoding") from None

    def _wrong(self, one: Any, wanted: str) -> ValueError:
        return ValueError(
            f"{self._path.name}: {kind_of(one)}, not {wanted}; fix answer.encoding, or the path"
        )


def parsed(body: bytes | bytearray, content_type: str = "") -> Any:
    """An answer in JSON, or in MessagePack where its type says so. Raises ValueError."""
    if "msgpack" in content_type:
        return msgpack.unpackb(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"NaN" in body or b"Infinity" in body:  # TensorFlow Serving writes them, though JSON has none
            return json.loads(body)
        raise ValueError(f"the answer is not JSON ({content_type or 'no Content-Type'})") from None
