"""The shapes of a model's inputs: which dimension is the batch, and what the server leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from users.errors import TargetError
from users.inputs.preparation import PIXELS

BATCH = "B"
"""The batch in a declared shape."""
CHANNELS, SIDE, IDS = 3, 384, 77
"""Sizes in examples of shapes where the server's are open."""
LEAST_SIDE = 16
"""A smaller square is hardly a picture."""
MEANING = f"{BATCH} where the batch goes; without {BATCH} a request is one item"


class Tensor(NamedTuple):
    """An input or output as the server states it, with whatever dimension is the batch; -1 is open.

    `format` is NCHW or NHWC where a Triton's configuration says so.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    format: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {written(self.shape)}"


class Shape(NamedTuple):
    """The shape of an item, and whether that of a request has a batch before it."""

    batched: bool
    item: tuple[int, ...]


class Batching(NamedTuple):
    """What a server says of batches: whether it is a Triton, and the most items a request as its model is set
    up, 0 where the model's own dimensions say.
    """

    triton: bool
    most: int


def written(shape: Sequence[int]) -> str:
    """As it stands in sentences.

    >>> written((-1, 512))
    '[-1,512]'
    """
    return f"[{','.join(map(str, shape))}]"


def shapes_of(inputs: Sequence[Tensor], batching: Batching, told: Mapping[str, str]) -> list[Shape]:
    """The shape of each input, by what is told of it or by the server.

    Raises TargetError where some are open, or do not go together.
    """
    found = [shape_of(one, batching, told.get(one.name, "")) for one in inputs]
    pairs = list(zip(inputs, found, strict=True))
    unknown = [one for one, shape in pairs if shape is None or is_open(one, shape)]
    for one in unknown:
        check_channels(one, one.shape[1:])
    if unknown:
        raise TargetError(question(unknown, batching, None not in found))
    without = [one.name for one, shape in pairs if shape and not shape.batched]
    if 0 < len(without) < len(inputs):
        raise TargetError(
            f"would have a batch dimension in some inputs and none in {', '.join(without)}; give each a"
            f" --shape"
            f" INPUT=SHAPE that begins with {BATCH}, or none"
        )
    return [shape for shape in found if shape]


def shape_of(one: Tensor, batching: Batching, text: str) -> Shape | None:
    """The shape that is declared, or the server's; None where nothing says which dimension is the batch.

    Servers other than Triton have no `max_batch_size`: with them a first dimension of -1 is the batch.
    """
    if text:
        shape = declared(one.name, text)
        check_declared(one, shape, batching, text)
        return shape
    if batching.most or (not batching.triton and one.shape[:1] == (-1,)):
        return Shape(True, one.shape[1:])
    return None


def declared(name: str, text: str) -> Shape:
    """The shape that a user writes. Raises TargetError.

    >>> declared("input", "B,3,224,224")
    Shape(batched=True, item=(3, 224, 224))
    """
    words = [word.strip() for word in text.split(",")]
    batched = words[0].upper() == BATCH
    try:
        item = tuple(map(int, words[batched:]))
    except ValueError:
        item = (0,)
    if any(side < 1 and side != -1 for side in item):
        raise TargetError(
            f"cannot have the shape {text!r} of input {name}; give numbers after the batch, as in --shape"
            f" {name}={BATCH},3,384,384"
        )
    return Shape(batched, item)


def check_declared(one: Tensor, shape: Shape, batching: Batching, text: str) -> None:
    """Raises TargetError where a Triton, which holds to its metadata, could not take a declared shape."""
    if batching.most and not shape.batched:
        raise TargetError(
            f"takes batches, but --shape {one.name}={text} has no batch; give --shape"
            f" {one.name}={BATCH},{text}"
        )
    whole = (-1, *shape.item) if shape.batched else shape.item
    # A batch of one will do where the model's first dimension is 1.
    stated = (-1, *one.shape[1:]) if shape.batched and one.shape[:1] == (1,) else one.shape
    alike = (side in (-1, given) for side, given in zip(stated, whole, strict=False))
    if batching.triton and not (len(whole) == len(stated) and all(alike)):
        raise TargetError(
            f"takes {one}, but --shape {one.name}={text} does not fit; give one that does, such as --shape"
            f" {one.name}={example(one)}"
        )


def is_open(one: Tensor, shape: Shape) -> bool:
    """Whether a dimension must still be said: those of files and texts are as long as these are."""
    return -1 in shape.item and one.dtype != "BYTES" and not is_file(one.dtype, shape.item)


def is_file(dtype: str, item: tuple[int, ...]) -> bool:
    """Whether it is a row of bytes, as DALI takes JPEG files."""
    return dtype == "UINT8" and item == (-1,)


def check_channels(one: Tensor, item: tuple[int, ...]) -> None:
    """Raises TargetError where an item is a picture, by its layout or its look, that is not RGB."""
    if len(item) != 3 or one.dtype not in PIXELS or CHANNELS in (item[0], item[2]):
        return
    stated = {"NCHW": item[0], "NHWC": item[2]}.get(one.format, -1)
    by_look = [item[0] if is_square(item[1:]) else -1, item[2] if is_square(item[:2]) else -1]
    channels = stated if stated > 0 else next((number for number in by_look if number in (1, 4)), 0)
    if channels:
        raise TargetError(
            f"takes {one}, a picture input of {channels} channel{'s' * (channels != 1)}: inferswarm prepares"
            " RGB; put a model in front of it that takes 3"
        )


def is_square(sides: tuple[int, ...]) -> bool:
    """Whether these may be the sides of a picture."""
    return sides[0] == sides[1] and (sides[0] == -1 or sides[0] >= LEAST_SIDE)


def question(unknown: Sequence[Tensor], batching: Batching, batch_known: bool) -> str:
    """The sentence that asks for the shapes of inputs."""
    stated = ", ".join(map(str, unknown))
    give = f"give {' '.join(f'--shape {one.name}={example(one)}' for one in unknown)}"
    if batch_known:
        return f"leaves sizes of its inputs open ({stated}); {give}, with the sizes that you serve"
    why = "has max_batch_size 0" if batching.triton else "declares no batch"
    return f"{why}, so the batch dimension is unknown ({stated}); {give} ({MEANING})"


def example(one: Tensor) -> str:
    """A shape that a user may have meant, with a likely size where one is open."""
    shape = one.shape or ((-1,) if one.dtype == "BYTES" else (-1, CHANNELS, -1, -1))
    picture = len(shape) == 3 and one.dtype in PIXELS and CHANNELS in (shape[0], shape[2])
    lead = shape[0] in (-1, 1) and not picture and not is_file(one.dtype, shape)
    return ",".join([*([BATCH] if lead else []), *map(str, filled(one.dtype, shape[lead:]))])


def filled(dtype: str, item: tuple[int, ...]) -> Iterator[int]:
    """The item with a number wherever it is open, but for a file's length."""
    picture = len(item) == 3 and dtype in PIXELS
    last = picture and (item[2] == CHANNELS or item[0] > CHANNELS)
    for at, side in enumerate(item):
        if side != -1 or is_file(dtype, item):
            yield side
        elif picture:
            yield CHANNELS if at == (2 if last else 0) else SIDE
        else:
            yield IDS if dtype in ("INT32", "INT64") else 1
