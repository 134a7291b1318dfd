"""The body of a declared request: what a file says once, and what stands in it for each item."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgpack  # type: ignore[import-untyped]
import orjson

KINDS = ("json", "multipart", "msgpack", "raw")
PLACEHOLDER = re.compile(r"\$(\$|\{|[A-Za-z_]\w*)", re.ASCII)
"""`$$` is a dollar; `${` is a mistake, as environment variables are only allowed in headers."""
FETCHED = re.compile(r"https?://\S", re.IGNORECASE)
DATA_URL = "data:image/jpeg;base64,"
DEEPEST = 32
"""Nesting depth, at most: more than any request has."""
BOUNDARY = "inferswarm-8f1d6c02b7e94a53a0e6d1c95b3f7a24"
"""The boundary between parts of a form; no JPEG contains it by accident."""
QUOTED = {'"': "%22", "\r": "%0D", "\n": "%0A"}
"""Escapes in the name of a form's field, as in WHATWG's HTML."""

Step = str | int
Steps = tuple[Step, ...]


class Item(Protocol):
    """What a placeholder may ask of an item; each is made when it is asked."""

    @property
    def jpeg(self) -> bytes:
        """The file."""

    @property
    def text(self) -> str:
        """The text."""

    @property
    def pixels(self) -> Any:
        """The prepared picture: an array."""


Make = Callable[[Sequence[Item]], Any]
"""Makes a part of the body for the items of a request."""


def encoded(item: Item) -> str:
    """Base64 of the file."""
    return base64.b64encode(item.jpeg).decode("ascii")


TEXTS: Mapping[str, Callable[[Item], str]] = {
    "jpeg_base64": encoded,
    "data_url": lambda item: f"{DATA_URL}{encoded(item)}",
    "text": lambda item: item.text,
}
"""What may appear inside a longer string."""
WHOLES: Mapping[str, Callable[[Item], Any]] = {
    "jpeg": lambda item: item.jpeg,
    "pixels": lambda item: item.pixels,
}
"""What must be a whole value."""
TAKEN = {"jpeg": ("multipart", "msgpack", "raw"), "pixels": ("json", "msgpack")}
"""By kind of body, which of these can be written."""
FORMS = {"jpeg": "bytes; give $jpeg_base64 or $data_url", "pixels": "an array; send it as json or msgpack"}


class Template:
    """A body, compiled once. Raises ValueError, as `FIELD: what is wrong; give …`, where it cannot be one.

    `kind` is how it is written, one of KINDS, `value` what stands in it. `repeat` is the dotted path of the
    array that is repeated for a batch, by default the only one of one element in which a placeholder stands;
    `max_batch`, 0 where it is not known, is the most items. `fetched`: the server may fetch URLs in it.

        Template("json", {"input": ["$data_url"]}).render(items)
    """

    def __init__(
        self, kind: str, value: Any, repeat: str | None = None, max_batch: int = 0, fetched: bool = False
    ) -> None:
        self.kind, self._field = kind, f"body.{kind}"
        value = fields_of(value) if kind == "multipart" else value
        check_values(self._field, value)
        found = list(placeholders(kind, value))
        check_sources(self._field, value, found, fetched)
        self._array = repeated(self._field, value, [steps for steps, _ in found], repeat, max_batch)
        self.uses = frozenset(name for _, name in found)
        self._make = self._compiled(value, ())

    @property
    def repeats(self) -> bool:
        """Whether it can hold several items."""
        return self._array is not None

    def filled(self, items: Sequence[Item]) -> Any:
        """What stands in a request for these items, before it is written. Raises ValueError."""
        if len(items) != 1 and not self.repeats:
            raise ValueError(nothing_repeats(self._field, len(items)))
        return self._make(items)

    def render(self, items: Sequence[Item]) -> tuple[bytes, str]:
        """The body for these items, and its Content-Type. Raises ValueError."""
        return WRITERS[self.kind](self.filled(items))

    def _compiled(self, value: Any, steps: Steps) -> Make:
        if isinstance(value, dict):
            named = {key: self._compiled(one, (*steps, key)) for key, one in value.items()}
            return lambda items: {key: make(items) for key, make in named.items()}
        if isinstance(value, list):
            makes = [self._compiled(one, (*steps, at)) for at, one in enumerate(value)]
            own = next((at for at, one in enumerate(value) if holds(one)), 0)
            return (
                repeating(makes, own) if steps == self._array else lambda items: [one(items) for one in makes]
            )
        return text_of(value) if isinstance(value, str) else lambda items: value


def repeating(makes: Sequence[Make], own: int) -> Make:
    """What makes an array with its element number `own` once for each item."""

    def make(items: Sequence[Item]) -> list[Any]:
        each = [makes[own]([item]) for item in items]
        return [*(one(items) for one in makes[:own]), *each, *(one(items) for one in makes[own + 1 :])]

    return make


def text_of(text: str) -> Make:
    """What makes a string: its one placeholder as it is, or text around texts."""
    whole = PLACEHOLDER.fullmatch(text)
    if whole and whole[1] in WHOLES:
        get = WHOLES[whole[1]]
        return lambda items: get(items[0])
    # Of each pair, what stands before a placeholder, and which that is: nothing at the end.
    texts, names = PLACEHOLDER.split(text)[::2], PLACEHOLDER.split(text)[1::2]
    gets = [TEXTS.get(name) for name in names]
    if not any(gets):
        plain = text.replace("$$", "$")
        return lambda items: plain

    def make(items: Sequence[Item]) -> str:
        parts = [texts[0]]
        for get, after in zip(gets, texts[1:], strict=True):
            parts += [get(items[0]) if get else "$", after]
        return "".join(parts)

    return make


def fields_of(value: Any) -> dict[str, list[Any]]:
    """The fields of a form, each a list of its values. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError('body.multipart: is not a table; give its fields, such as { image = "$jpeg" }')
    made = {name: one if isinstance(one, list) else [one] for name, one in value.items()}
    for name, values in made.items():
        if any(isinstance(one, (dict, list)) for one in values):
            raise ValueError(
                f"body.multipart.{name}: is not a text or number; give JSON as a text in ''' '''"
            )
    return made


def strings(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Every string of a value, and where it is."""
    if isinstance(value, str):
        yield steps, value
    elif isinstance(value, (dict, list)):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from strings(one, (*steps, step))


def holds(value: Any) -> bool:
    """Whether a placeholder stands anywhere in it."""
    return any(
        name in TEXTS or name in WHOLES for _, text in strings(value) for name in PLACEHOLDER.findall(text)
    )


def placeholders(kind: str, value: Any) -> Iterator[tuple[Steps, str]]:
    """Every placeholder of a body, and where it is. Raises ValueError for one that cannot be there."""
    for steps, text in strings(value):
        for name in PLACEHOLDER.findall(text):
            field = shown(f"body.{kind}", steps)
            if name == "$":
                continue
            if name not in TEXTS and name not in WHOLES:
                known = ", ".join(f"${one}" for one in (*TEXTS, *WHOLES))
                raise ValueError(
                    f"{field}: has ${name:.40}, which is not a placeholder; give {known}, or $$ for a dollar"
                )
            if name in WHOLES and (kind not in TAKEN[name] or text != f"${name}"):
                where = "inside a longer text" if kind in TAKEN[name] else f"in {kind}"
                raise ValueError(f"{field}: has ${name} {where}, which cannot hold {FORMS[name]}")
            yield steps, name


def check_values(field: str, value: Any, steps: Steps = ()) -> None:
    """Raises ValueError for what neither JSON nor msgpack has a form for: dates, numbers that are none."""
    if field == "body.raw" and not isinstance(value, str):
        raise ValueError('body.raw: is not a text; give one such as "$jpeg"')
    if len(steps) > DEEPEST:
        raise ValueError(f"{field}: is nested more than {DEEPEST} deep; give a body like that of a request")
    if isinstance(value, (dict, list)):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            check_values(field, one, (*steps, step))
    elif not isinstance(value, (str, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(
            f"{shown(field, steps)}: {value} cannot be written in a body; give it as a text in quotes"
        )


def check_sources(field: str, value: Any, found: Sequence[object], fetched: bool) -> None:
    """Raises ValueError where a server would fetch pictures itself, or nothing of an item would be sent."""
    if fetched:
        return
    for steps, text in strings(value):
        if FETCHED.search(text):
            raise ValueError(
                f"{shown(field, steps)}: has a URL, which the server would fetch itself, so the study would"
                " measure the download; send the picture as $data_url, or set body.fetched_by_server = true"
            )
    if not found:
        raise ValueError(
            f"{field}: has no placeholder for a picture or a text; give $jpeg_base64, $data_url, $jpeg,"
            " $text or $pixels"
        )


def repeated(
    field: str, value: Any, found: Sequence[Steps], repeat: str | None, max_batch: int
) -> Steps | None:
    """Where the array is that is repeated for a batch; None where none is, or need be. Raises ValueError."""
    if repeat is not None:
        arrays = [array_named(value, found, repeat)]
    elif max_batch == 1:
        return None
    else:
        arrays = candidates(value, found)
    if len(arrays) > 1:
        named = " or ".join(f'"{dotted(steps) or "."}"' for steps in arrays[:3])
        raise ValueError(
            f"{field}: {len(arrays)} arrays may repeat for a batch; give body.repeat = {named},"
            " or max_batch = 1"
        )
    if not arrays:
        if max_batch > 1:
            raise ValueError(nothing_repeats(field, max_batch))
        return None
    (array,) = arrays
    if outside := next((steps for steps in found if steps[: len(array)] != array), None):
        if max_batch == 1:
            return None
        raise ValueError(
            f"{shown(field, outside)}: stands outside {shown(field, array)}, which is repeated for a"
            " batch; move it inside, or set max_batch = 1"
        )
    return array


def candidates(value: Any, found: Sequence[Steps]) -> list[Steps]:
    """The arrays of one element in which a placeholder stands, outermost first."""
    arrays = {steps[:at]: None for steps in found for at, step in enumerate(steps) if isinstance(step, int)}
    return [steps for steps in arrays if len(at_steps(value, steps)) == 1]


def array_named(value: Any, found: Sequence[Steps], repeat: str) -> Steps:
    """The array at a dotted path, one element of which has a placeholder. Raises ValueError."""
    wanted = repeat.strip(".")
    arrays = {steps[:at] for steps in found for at, step in enumerate(steps) if isinstance(step, int)}
    for steps in arrays:
        if dotted(steps) == wanted:
            if sum(map(holds, at_steps(value, steps))) > 1:
                raise ValueError(f"body.repeat: {repeat:.40} has several elements per item; leave only one")
            return steps
    known = ", ".join(sorted(f'"{dotted(steps) or "."}"' for steps in arrays))
    fix = f"give {known}" if known else "put the placeholder into an array, or leave out repeat"
    raise ValueError(f"body.repeat: {repeat!r:.40} is not an array with a placeholder; {fix}")


def at_steps(value: Any, steps: Steps) -> Any:
    """What stands there."""
    for step in steps:
        value = value[step]
    return value


def dotted(steps: Steps) -> str:
    """`messages.0.content`."""
    return ".".join(map(str, steps))


def shown(field: str, steps: Steps) -> str:
    """`body.json.messages[0].content`."""
    return field + "".join(f"[{step}]" if isinstance(step, int) else f".{step:.40}" for step in steps)


def nothing_repeats(field: str, batch: int) -> str:
    """The sentence on a batch that a body cannot hold."""
    return (
        f"{field}: nothing in it repeats for a batch of {batch}; put the placeholder into an array, or"
        " set max_batch = 1"
    )


def json_body(value: Any) -> tuple[bytes, str]:
    """JSON."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), "application/json"


def msgpack_body(value: Any) -> tuple[bytes, str]:
    """MessagePack, whose bytes are bytes."""
    made: bytes = msgpack.packb(value, default=lambda array: array.tolist())
    return made, "application/msgpack"


def raw_body(value: Any) -> tuple[bytes, str]:
    """A file, or a text."""
    return (
        (value, "image/jpeg") if isinstance(value, bytes) else (value.encode(), "text/plain; charset=utf-8")
    )


def multipart_body(fields: Mapping[str, Sequence[Any]]) -> tuple[bytes, str]:
    """A form: its files as files, and all else as text. Source: RFC 7578."""
    parts = [part for name, values in fields.items() for value in values for part in part_of(name, value)]
    return b"".join((*parts, f"--{BOUNDARY}--\r\n".encode())), f"multipart/form-data; boundary={BOUNDARY}"


def part_of(name: str, value: Any) -> tuple[bytes, bytes, bytes]:
    """One field of a form."""
    quoted = "".join(QUOTED.get(char, char) for char in name)
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{quoted}"'
    if isinstance(value, bytes):
        head += '; filename="image.jpg"\r\nContent-Type: image/jpeg'
    else:
        value = (str(value).lower() if isinstance(value, bool) else str(value)).encode()
    return f"{head}\r\n\r\n".encode(), value, b"\r\n"


WRITERS: Mapping[str, Callable[[Any], tuple[bytes, str]]] = {
    "json": json_body, "multipart": multipart_body, "msgpack": msgpack_body, "raw": raw_body,
}  # fmt: skip
