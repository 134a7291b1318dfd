"""Where the vectors are in protobuf messages, and how their numbers are written there."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from users.codecs.declared.answer_path import FORM, STEP, AnswerReader, Floats, check_told, ordered
from users.codecs.embed import rows_of

INTEGERS = (
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64,
)  # fmt: skip
NUMBERS = (*INTEGERS, FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE)
MOST_NAMED = 12
"""Names that a message lists, at most."""
INNER: Mapping[str, str] = {"list": "", "json-string": "list", "base64": "raw", "raw": "raw", "npy": "npy"}
"""By encoding, that of a whole HTTP answer which reads one value that holds a file."""
FITTING: Mapping[str, Sequence[str]] = {
    "a number": ("list",),
    "bytes": ("raw", "npy", "json-string", "base64"),
    "a text": ("json-string", "base64"),
}
"""The encodings that each kind of field can have."""

Values = list[Any]


def listed(names: Sequence[str]) -> str:
    """Some of them."""
    return ", ".join((*names[:MOST_NAMED], "…") if len(names) > MOST_NAMED else names) or "none"


def named(descriptor: Descriptor, name: str, field: str) -> FieldDescriptor:
    """A field by its own name, or that which it has in JSON. Raises ValueError, which begins with `field`."""
    by_name = {**{one.json_name: one for one in descriptor.fields}, **descriptor.fields_by_name}
    if name not in by_name:
        known = listed([one.name for one in descriptor.fields])
        raise ValueError(
            f"{field}: there is no {name!r:.60} in {descriptor.name}, which has {known}; give one"
        )
    return by_name[name]


def is_map(field: FieldDescriptor) -> bool:
    """Whether it is a table by keys."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def kind_of(field: FieldDescriptor) -> str:
    """What one value of a field is."""
    if field.message_type:
        return f"a {field.message_type.name}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "bytes"
    if field.type == FieldDescriptor.TYPE_STRING:
        return "a text"
    return "a number" if field.cpp_type in NUMBERS else "an enum or a bool"


def key_of(field: FieldDescriptor, key: str, where: str) -> Any:
    """A key of a map, which JSON writes as a text. Raises ValueError, which begins with `where`."""
    try:
        return int(key) if field.message_type.fields_by_name["key"].cpp_type in INTEGERS else key
    except ValueError:
        raise ValueError(f"{where}: {key!r:.60} is not a key of {field.name}; give a number") from None


class FieldPath:
    """A path such as `outputs[].values` through the fields of messages, checked against their descriptor.

    It is as AnswerPath has it; a map's keys are steps as fields are. Called with a message it gives what is
    there. `leaf` is the field that it ends at, `whole` whether at the whole list of a repeated one. Raises
    ValueError where the message cannot have it.
    """

    leaf: FieldDescriptor

    def __init__(self, text: str, message: Descriptor, field: str = "answer.vectors") -> None:
        bare = text.strip().lstrip(".")
        if not FORM.fullmatch(bare):
            raise ValueError(f"{field}: {text!r:.60} is not a path; give one such as data[].embedding")
        self.name, self.whole = f"{field} {bare}", False
        self._inside: Descriptor | None = message
        self._steps = [
            self._by_name(key) if key else self._by_number(number) for number, key in STEP.findall(bare)
        ]
        if self.leaf.message_type:
            raise ValueError(f"{self.name}: ends at {self._place()}; continue with {self._next()}")

    def __call__(self, message: Message) -> Values:
        """What is there. Raises ValueError where a list is too short, or a map has no such key."""
        found: Values = [message]
        for step in self._steps:
            found = step(found)
        return found

    def _place(self) -> str:
        """What it has come to."""
        if self._inside is not None:
            return f"a {self._inside.name}"
        if is_map(self.leaf):
            return "a map"
        return f"a list, each {kind_of(self.leaf)}" if self.whole else kind_of(self.leaf)

    def _next(self) -> str:
        """What can follow."""
        if self._inside is not None:
            return f"one of {listed([one.name for one in self._inside.fields])}"
        if is_map(self.leaf):
            return "one of its keys"
        return "[]" if self.whole else "nothing"

    def _reach(self, leaf: FieldDescriptor, whole: bool) -> None:
        self.leaf, self.whole = leaf, whole
        self._inside = None if whole else leaf.message_type

    def _by_name(self, name: str) -> Callable[[Values], Values]:
        if self._inside is None and self.whole and is_map(self.leaf):
            return self._by_key(self.leaf, name)
        if self._inside is None:
            raise ValueError(
                f"{self.name}: {self._place()} comes before {name!r:.60}; continue with {self._next()}"
            )
        leaf = named(self._inside, name, self.name)
        self._reach(leaf, leaf.is_repeated)
        return lambda found: [getattr(one, leaf.name) for one in found]

    def _by_key(self, leaf: FieldDescriptor, text: str) -> Callable[[Values], Values]:
        key = key_of(leaf, text, self.name)
        self._reach(leaf.message_type.fields_by_name["value"], False)

        def step(found: Values) -> Values:
            for one in found:
                if key not in one:  # to ask for it would make it
                    raise ValueError(
                        f"{self.name}: no {text!r} in {leaf.name}, which has {listed([*map(str, one)])}"
                    )
            return [one[key] for one in found]

        return step

    def _by_number(self, number: str) -> Callable[[Values], Values]:
        if self._inside is not None or not self.whole or is_map(self.leaf):
            raise ValueError(
                f"{self.name}: {self._place()} comes before [{number}]; continue with {self._next()}"
            )
        leaf = self.leaf
        self._reach(leaf, False)
        if not number:
            return lambda found: [one for many in found for one in many]

        def step(found: Values) -> Values:
            if any(len(many) <= int(number) for many in found):
                raise ValueError(f"{self.name}: {leaf.name} has no element {number}")
            return [many[int(number)] for many in found]

        return step


class MessageReader:
    """Reads the vectors out of messages, as the table `answer` of an endpoint's file says.

    Each is a list of numbers, or bytes or a text that hold one; single numbers, and rows in one piece, are
    divided by `dimension`, that of the vectors, if it is known and not 0. Raises ValueError, as `FIELD: what
    is wrong; give …`, if the table is not valid.
    """

    def __init__(self, told: Mapping[str, Any], message: Descriptor, dimension: int = 0) -> None:
        check_told(told)
        self._path = FieldPath(told["vectors"], message)
        self._order = FieldPath(told["order"], message, "answer.order") if "order" in told else None
        self._encoding, self._dimension = told.get("encoding", "list"), dimension
        self._check()
        inner = {"vectors": ".", "encoding": INNER[self._encoding], "dtype": told.get("dtype", "float32")}
        self._inner = AnswerReader(inner, dimension) if inner["encoding"] else None

    def __call__(self, message: Message) -> Floats:
        """float32 of shape [rows, dimension]. Raises ValueError."""
        found, whole = self._path(message), self._path.whole
        if self._inner is None:
            made = self._rows(found if whole else [found])
        else:
            values = [one for many in found for one in many] if whole else found
            made = np.concatenate([self._inner(self._file(one)) for one in values or [b""]])
        if self._dimension and len(made) == 1 and not made.size % self._dimension:
            made = made.reshape(-1, self._dimension)
        return made if self._order is None else ordered(made, self._order(message))

    def _check(self) -> None:
        """Raises ValueError where what the paths lead to is not written so."""
        kind, order = kind_of(self._path.leaf), self._order
        if kind not in FITTING:
            raise ValueError(f"{self._path.name}: is {kind}; give the path of numbers, of bytes or of a text")
        if self._encoding not in FITTING[kind]:
            raise ValueError(
                f"answer.encoding: {self._path.name} is {kind}, which cannot be {self._encoding}; give"
                f" {' or '.join(FITTING[kind])}"
            )
        if order and (order.whole or order.leaf.cpp_type not in INTEGERS):
            raise ValueError(
                f"{order.name}: is not one integer per row; give a path such as data[].index, or leave it out"
            )

    def _rows(self, found: Sequence[Sequence[float]]) -> Floats:
        if not found or not all(map(len, found)):
            raise ValueError(f"{self._path.name}: has no numbers in the answer")
        try:
            return rows_of(found)  # type: ignore[arg-type]
        except ValueError:
            raise ValueError(f"{self._path.name}: has rows of unequal lengths") from None

    def _file(self, value: str | bytes) -> bytes:
        """The bytes in a value."""
        if not value:
            raise ValueError(f"{self._path.name}: has nothing in the answer")
        data = value.encode() if isinstance(value, str) else value
        try:
            return binascii.a2b_base64(data, strict_mode=True) if self._encoding == "base64" else data
        except binascii.Error as error:
            raise ValueError(f"{self._path.name}: is not base64 ({error}); fix answer.encoding") from None
