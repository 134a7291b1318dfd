"""Rows of tensors, one for each item of a set: made when they are first asked for, and kept up to a bound."""

from __future__ import annotations

import math
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from users.inputs.pause import give_way
from users.inputs.preparation import Preparation

NUMBERS: Mapping[str, type[np.generic]] = {
    "BOOL": np.bool_,
    **{"UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64},
    **{"INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64},
    **{"FP16": np.float16, "FP32": np.float32, "FP64": np.float64},
    "BYTES": np.object_,
}
"""NumPy's types by KServe's names; it has no BF16."""
WORD_BYTES = 64
"""Memory that a short bytes object takes in Python."""
DEFAULT_MOST = 256
HALF_STEPS = 2048
"""Float16 has them all between 0 and 1; a float32 near 1 would be rounded up to 1."""
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)


class InputLike(Protocol):
    """What is asked of an input: of users.contract.Input, which cannot be seen from here."""

    @property
    def name(self) -> str:
        """As the model calls it."""

    @property
    def dtype(self) -> str:
        """KServe's word."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one item; -1 is as long as the item is."""

    @property
    def role(self) -> str:
        """What stands in it."""

    @property
    def layout(self) -> str:
        """Of a picture."""

    @property
    def most(self) -> int:
        """Random numbers and ids are below it."""


class ContractLike(Protocol):
    """What is asked of a users.contract.Contract."""

    @property
    def inputs(self) -> Sequence[InputLike]:
        """All of them."""

    @property
    def preparation(self) -> Preparation:
        """Of its pictures."""

    @property
    def tokenizer(self) -> str:
        """The path of a tokenizer.json, or nothing."""

    @property
    def of_text(self) -> bool:
        """Whether its items are texts."""


class Rows:
    """An array of [count, *shape], each row of which is made by `make(index)` when it is first asked for."""

    def __init__(
        self, count: int, shape: tuple[int, ...], dtype: type[np.generic], make: Callable[[int], Any]
    ):
        self._rows: NDArray[Any] = np.empty((count, *shape), dtype)  # memory is taken as rows are written
        self._make = make
        self._missing = set(range(count))

    @property
    def nbytes(self) -> int:
        """What the rows take that have been made."""
        count = len(self._rows)
        return self._rows.nbytes // count * (count - len(self._missing))

    def fill(self, indices: Iterable[int]) -> bool:
        """Make what is missing of these, and say whether anything was."""
        missing = [index for index in indices if index in self._missing] if self._missing else ()
        for index in missing:
            self._rows[index] = self._make(index)
            self._missing.discard(index)
            give_way()  # large pictures take long
        return bool(missing)

    def take(self, indices: Sequence[int]) -> NDArray[Any]:
        """A copy of these rows, which have been made."""
        return self._rows.take(indices, axis=0)  # a microsecond less than `[list(indices)]`


class RowPool:
    """Rows in all forms that endpoints have asked for, `most_bytes` together; the least recently used go."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, Rows] = OrderedDict()
        self._latest: tuple[Hashable, Rows | None] = (None, None)
        """The last of those that are kept: repeated lookups, as by each request, need not hash."""

    @property
    def nbytes(self) -> int:
        """What all of it takes."""
        return sum(rows.nbytes for rows in self._kept.values())

    def filled(self, form: Hashable, begin: Callable[[], Rows], indices: Iterable[int]) -> Rows:
        """The rows of a form, with those of `indices` made; `begin` makes it where it is not kept."""
        latest, rows = self._latest
        if rows is None or form != latest:
            rows = self._kept.pop(form, None) or begin()
            self._kept[form] = rows
            self._latest = form, rows
        if rows.fill(indices):
            self._trim()
        return rows

    def _trim(self) -> None:
        excess = self.nbytes - self._most_bytes
        while excess > 0 and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            excess -= gone.nbytes


def form_of(one: InputLike, contract: ContractLike) -> Hashable:
    """What inputs have in common whose rows are the same."""
    if one.role == "picture":
        return one.role, one.dtype, one.shape, one.layout, contract.preparation
    of = contract.tokenizer if one.role == "ids" else one.name
    return one.role, one.dtype, one.shape, one.most, of, contract.of_text


def closed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with 1 where it is open."""
    return tuple(1 if side < 0 else side for side in shape)


def type_of(one: InputLike) -> type[np.generic]:
    """NumPy's type of an input. Raises ValueError."""
    if one.dtype not in NUMBERS:
        raise ValueError(
            f"input {one.name}: cannot make values of type {one.dtype}; serve it as another, such as FP32"
        )
    return NUMBERS[one.dtype]


def row_bytes(one: InputLike) -> int:
    """What a row takes. Raises ValueError."""
    kind = type_of(one)
    return math.prod(closed(one.shape)) * (WORD_BYTES if kind is np.object_ else np.dtype(kind).itemsize)


def random_row(one: InputLike, index: int) -> NDArray[Any]:
    """Random values, the same for an item in each process: floats from 0 to below 1, integers below `most`.

    Of BYTES words of ASCII letters. Raises ValueError.
    """
    kind, shape = type_of(one), closed(one.shape)
    generator = np.random.default_rng((zlib.crc32(one.name.encode()), index))
    if kind is np.object_:
        return random_words(generator, shape)
    if kind is np.float16:
        return (generator.integers(0, HALF_STEPS, shape) / HALF_STEPS).astype(np.float16)
    if issubclass(kind, np.floating):
        return generator.random(shape, dtype=kind)
    most = 2 if kind is np.bool_ else min(one.most or DEFAULT_MOST, int(np.iinfo(np.dtype(kind)).max) + 1)
    return generator.integers(0, most, shape, dtype=kind)


def random_words(generator: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.object_]:
    """Words of 3 to 9 letters."""
    words = np.empty(math.prod(shape), dtype=np.object_)
    for at, length in enumerate(generator.integers(3, 10, len(words))):
        words[at] = generator.choice(LETTERS, length).tobytes()
    return words.reshape(shape)
