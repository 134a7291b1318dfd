"""What a model of a KServe V2 server takes and gives, by rule from what the server says of it.

What that leaves open is asked about, in one sentence that names the option; what is only likely is a guess,
which the contract names. Of an ensemble and its like only the outer tensors matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from users.codecs.v2 import FLOATS, POOL
from users.contract import PICTURES, Contract, Input, Layout, Role
from users.endpoint import Payload
from users.errors import TargetError
from users.inputs.preparation import CLIP, PIXELS, PRESETS, Preparation
from users.inputs.rows import type_of
from users.triton.shapes import (
    CHANNELS,
    Batching,
    Shape,
    Tensor,
    check_channels,
    is_file,
    shapes_of,
    written,
)

IDS = ("INT32", "INT64")
VOCABULARIES: Mapping[int, int] = {77: 49_408, 64: 32_000}
"""The number of ids, by the length of a text: CLIP's, SigLIP's."""
FEWEST_IDS = 1_000
"""All vocabularies have more: the ids of a text of another length are below it."""
TEXT_WORDS = ("text", "query", "prompt", "caption", "sentence", "passage", "document", "question")
PICTURE_WORDS = ("image", "img", "picture", "photo", "pixel", "jpeg", "jpg")
FAMILIES = {"siglip": "siglip", "dino": "dinov2", "resnet": "imagenet", "imagenet": "imagenet"}
"""Presets of how pictures are prepared, by a part of the model's name."""
LARGEST_ITEM = 1 << 26
"""Values per item: 4,700 x 4,700 pixels, which take 270 MB as FP32."""
FOREIGN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What values of an unexpected form raise."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user declares of a model, as far as he does.

    `shapes`: by the names of inputs, such as `B,3,384,384`, with B for the batch. `max_batch`: the most items
    a request, where that is less than the server's; 0 for the server's. `tokenizer`: the path of a
    tokenizer.json. `inputs`: by their names what they hold, one of DECLARED. `sends`: which of pictures and
    texts he has given of his own, where it is one of them.
    """

    prepare: Preparation | None = None
    output: str = ""
    shapes: Mapping[str, str] = field(default_factory=dict)
    max_batch: int = 0
    tokenizer: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    sends: Literal["", "picture", "text"] = ""


class Stated(NamedTuple):
    """What the server says; `names` are those of the model and of what runs it."""

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    batching: Batching
    names: tuple[str, str]


def discovered(
    metadata: Mapping[str, Any], config: Mapping[str, Any] | None, asked: Asked, model: str
) -> Contract:
    """The contract of a model by its metadata and, of a Triton, its configuration, both as JSON has them.

    protobuf's JSON will do, in which integers may be text, and what is 0 is left out. Raises TargetError with
    the end of a sentence.
    """
    try:
        stated = stated_of(metadata, config, asked, model)
    except FOREIGN as error:
        raise TargetError(
            f"answers for model {model!r} with metadata that does not follow the KServe V2 protocol;"
            f" give a server that does"
        ) from error
    if not stated.inputs:
        raise TargetError(
            f"declares no input of model {model!r}; describe the endpoint in a file, with its body and answer"
        )
    shapes = shapes_of(stated.inputs, stated.batching, asked.shapes)
    vector = vector_of(stated.outputs, asked.output, shapes[0].batched, model)
    return contract_of(stated, asked, as_batch(shapes, vector), vector)


def stated_of(
    metadata: Mapping[str, Any], config: Mapping[str, Any] | None, asked: Asked, model: str
) -> Stated:
    """What the server says, without inputs that may be left out and of which nothing is declared."""
    told = config or {}
    given = told.get("input") or ()
    formats = {one["name"]: str(one.get("format", "")).removeprefix("FORMAT_") for one in given}
    spare = {one["name"] for one in given if one.get("optional")}
    spare -= {*asked.shapes, *asked.inputs}
    return Stated(
        [
            one._replace(format=formats.get(one.name, ""))
            for one in tensors(metadata.get("inputs"))
            if one.name not in spare
        ],
        tensors(metadata.get("outputs")),
        Batching(config is not None, int(told.get("max_batch_size", 0))),
        (model, str(metadata.get("platform", ""))),
    )


def tensors(told: Any) -> list[Tensor]:
    """Inputs or outputs as metadata have them."""
    return [
        Tensor(str(one["name"]), str(one["datatype"]), tuple(map(int, one.get("shape") or ())))
        for one in told or ()
    ]


def contract_of(stated: Stated, asked: Asked, shapes: Sequence[Shape], vector: Tensor) -> Contract:
    """The contract of inputs whose shapes are known, with every guess. Raises TargetError."""
    batched = shapes[0].batched
    found = [input_of(one, shape.item, asked) for one, shape in zip(stated.inputs, shapes, strict=True)]
    taken = tuple(one for one, _ in found)
    preparation, prepare_guess = preparation_of(taken, asked.prepare, stated.names)
    # A dimension of 1 is a batch of one.
    one_only = not batched or any(one.shape[:1] == (1,) for one in stated.inputs)
    bounds = (stated.batching.most, asked.max_batch, int(one_only))
    return Contract(
        inputs=taken,
        preparation=preparation,
        output=vector.name,
        dimension=dimension_of(vector, batched),
        max_batch=min(filter(None, bounds), default=0),
        batched=batched,
        tokenizer=asked.tokenizer,
        guesses=tuple(
            filter(None, (batch_guess(stated, asked), *(guess for _, guess in found), prepare_guess))
        ),
    )


def payload_of(contract: Contract) -> Payload:
    """What is sent, as reports call it: that of its first picture, or text, or random."""
    sent: Mapping[str, Payload] = {"FP32": "fp32", "FP16": "fp16", "UINT8": "uint8"}
    pictures = [one for one in contract.inputs if one.role in PICTURES]
    if pictures:
        return "jpeg" if pictures[0].role == "jpeg" else sent[pictures[0].dtype]
    return "text" if contract.of_text else "random"


def as_batch(shapes: Sequence[Shape], vector: Tensor) -> Sequence[Shape]:
    """A request of one item whose tensors all begin with 1 is a batch of one, and an item is what follows."""
    ones = all(not shape.batched and shape.item[:1] == (1,) for shape in shapes)
    return [Shape(True, shape.item[1:]) for shape in shapes] if ones and len(vector.shape) != 1 else shapes


def batch_guess(stated: Stated, asked: Asked) -> str:
    """That the batch comes first is the habit of KServe's servers; only Triton says so."""
    names = [one.name for one in stated.inputs if one.name not in asked.shapes]
    if stated.batching.triton or not names:
        return ""
    return f"The first dimension of {' and '.join(names)} is taken as the batch: --shape says otherwise."


def input_of(one: Tensor, item: tuple[int, ...], asked: Asked) -> tuple[Input, str]:
    """An input with its role, and the guess in that, if any. Raises TargetError."""
    if word := asked.inputs.get(one.name):
        made, guess = declared_input(one, item, word, asked.tokenizer)
    else:
        made, guess = picture_of(one, item) or other_of(one, item, asked)
    try:
        type_of(made)
    except ValueError as error:
        raise TargetError(f"takes {one}: {error}") from error
    if math.prod(map(abs, item)) > LARGEST_ITEM:
        raise TargetError(
            f"would take items of {written(item)} as input {one.name}, more than {LARGEST_ITEM:,} numbers;"
            f" give a smaller --shape {one.name}=SHAPE"
        )
    return made, guess


def picture_of(one: Tensor, item: tuple[int, ...]) -> tuple[Input, str] | None:
    """A picture of three channels, or none. Raises TargetError where it has another number of them."""
    check_channels(one, item)
    if len(item) != 3 or one.dtype not in PIXELS or CHANNELS not in (item[0], item[2]):
        return None
    layout: Layout = "NCHW" if item[0] == CHANNELS else "NHWC"
    if item[0] != item[2] or one.format == "NCHW":
        return Input(one.name, one.dtype, item, "picture", layout), ""
    if one.format == "NHWC":
        return Input(one.name, one.dtype, item, "picture", "NHWC"), ""
    guess = f"Input {one.name} is taken as NCHW, although its last dimension could also be the channels."
    return Input(one.name, one.dtype, item, "picture", layout), guess


def declared_input(one: Tensor, item: tuple[int, ...], word: str, tokenizer: str) -> tuple[Input, str]:
    """An input that holds what is declared, and the guess in its layout. Raises TargetError."""
    pixels = picture_of(one, item) if word == "picture" else None
    if pixels:
        return pixels
    fits = {
        "picture": is_text(one, item) or is_file(one.dtype, item),
        "text": is_text(one, item),
        "ids": is_row_of_ids(one, item),
        "random": True,
    }
    if not fits.get(word, one.dtype != "BYTES"):
        raise TargetError(f"takes {one}, which cannot hold {word}; give --input {one.name}=HOW that fits it")
    role = cast(Role, "jpeg" if word == "picture" else word)
    return Input(one.name, one.dtype, item, role, most=ids_below(item, tokenizer) if word == "ids" else 0), ""


def other_of(one: Tensor, item: tuple[int, ...], asked: Asked) -> tuple[Input, str]:
    """An input that is no picture, and the guess that its role is."""
    role, most, guess = role_of(one, item, asked)
    told = f"Input {one.name} {guess}: --input {one.name}=HOW says otherwise."
    return Input(one.name, one.dtype, item, role, most=most), told


def role_of(one: Tensor, item: tuple[int, ...], asked: Asked) -> tuple[Role, int, str]:
    """The role of what is no picture, below which number its values are, and what is guessed in that."""
    name = one.name.lower()
    if is_text(one, item):
        return of_bytes(name, asked.sends)
    if is_file(one.dtype, item):
        return "jpeg", 0, "is taken for an encoded JPEG, with zeros behind the shorter ones of a batch"
    if one.dtype != "BYTES" and "mask" in name:
        return "ones", 0, "is filled with ones, as a mask without padding"
    ids = is_row_of_ids(one, item)
    known = ids and (asked.tokenizer or item[-1] in VOCABULARIES)
    if one.dtype in IDS and ("token_type" in name or "segment" in name or (known and "type" in name)):
        return "zeros", 0, "is filled with zeros, as for a single text"
    if known and "position" in name:
        return "random", item[-1], f"is filled with random positions below {item[-1]}"
    if known or (ids and "input_ids" in name):
        most = ids_below(item, asked.tokenizer)
        sent = f", of which random ones below {most:,} are sent" if most else ""
        return "ids", most, f"is taken for the token ids of a text{sent}"
    stated = f"{one.dtype} {written(item)}"
    return "random", 0, f"is filled with random values, since the meaning of its {stated} is unknown"


def of_bytes(name: str, sends: str) -> tuple[Role, int, str]:
    """The role of one text or file an item: by the input's name, or by what a user sends."""
    if any(word in name for word in TEXT_WORDS):
        return "text", 0, "is taken for a text, by its name"
    if any(word in name for word in PICTURE_WORDS):
        return "jpeg", 0, "is taken for an encoded JPEG, by its name"
    if sends == "text":
        return "text", 0, "is taken for a text, since --texts is given"
    why = "since --images is given" if sends else "since it is of BYTES"
    return "jpeg", 0, f"is taken for an encoded JPEG, {why}"


def is_text(one: Tensor, item: tuple[int, ...]) -> bool:
    """Whether an item is one string, which may also be a file."""
    return one.dtype == "BYTES" and item in ((), (1,), (-1,))


def is_row_of_ids(one: Tensor, item: tuple[int, ...]) -> bool:
    """Whether an item is a row of integers, as token ids are."""
    return one.dtype in IDS and bool(item) and math.prod(item) == item[-1]


def ids_below(item: tuple[int, ...], tokenizer: str) -> int:
    """Random token ids are below it; 0 where there are the tokenizer's."""
    return 0 if tokenizer else VOCABULARIES.get(item[-1], FEWEST_IDS)


def preparation_of(
    inputs: Sequence[Input], declared: Preparation | None, names: Sequence[str]
) -> tuple[Preparation, str]:
    """How pictures are prepared, and the guess in that, if any: by what the names of the model hold."""
    pictures = [one for one in inputs if one.role == "picture"]
    if declared is not None or not pictures:
        return declared or CLIP, ""
    known = [preset for word, preset in FAMILIES.items() if any(word in name.lower() for name in names)]
    preset = known[0] if known else CLIP.name
    why = "by the model's name" if known else "by default"
    floats = any(one.dtype != "UINT8" for one in pictures)
    done = "Pixels are prepared" if floats else "Pictures are resized and cropped"
    return PRESETS[preset], f"{done} as for {preset}, {why}: --prepare says how."


def vector_of(outputs: Sequence[Tensor], name: str, batched: bool, model: str) -> Tensor:
    """The output that is the vector: that of the name, or the only one that can be. Raises TargetError."""
    listed = ", ".join(map(str, outputs)) or "none"
    fix = f"its outputs are {listed}; choose one with --output NAME"
    if name:
        named = next((one for one in outputs if one.name == name), None)
        if named is None and outputs:
            raise TargetError(f"has no output {name!r} of model {model!r}; {fix}")
        if named and named.dtype not in FLOATS:
            kinds = ", ".join(FLOATS)
            raise TargetError(f"gives output {name} as {named.dtype}, but vectors must be {kinds}; {fix}")
        return named or Tensor(name, "", ())
    floats = [one for one in outputs if one.dtype in FLOATS]
    vectors = [one for one in floats if len(sides_of(one, batched)) == 1]
    # A single number is a score, but beside vectors a model's own scale or loss.
    likely = vectors or [one for one in floats if one.shape and not sides_of(one, batched)]
    if len(likely) == 1:
        return likely[0]
    if len(floats) == 1:
        dimension_of(floats[0], batched)  # raises what it says of vectors of tokens
    why = "several outputs that could be the vector" if likely else "no output that is clearly the vector"
    raise TargetError(f"has {why} of model {model!r}: {fix}")


def sides_of(output: Tensor, batched: bool) -> tuple[int, ...]:
    """What of an output's shape is an item's, without sides of 1: none where an item is a single number."""
    rest = output.shape[1:]
    item = rest if batched or (rest and output.shape[0] in (1, -1)) else output.shape
    return tuple(side for side in item if side != 1)


def dimension_of(vector: Tensor, batched: bool) -> int:
    """How many numbers an item has in an output; 0 where that is open.

    Raises TargetError where it has several vectors, as of tokens.
    """
    sides = sides_of(vector, batched)
    if len(sides) > 1:
        raise TargetError(f"gives {vector} as the vector, of which an item has several; {POOL}")
    if not sides:
        return int(bool(vector.shape))
    return max(0, sides[0])
