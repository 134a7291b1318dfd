"""A Contract is what a model takes and gives: its inputs, how they are prepared, and its vector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from users.inputs.preparation import CLIP, Preparation

Role = Literal["picture", "jpeg", "text", "ids", "ones", "zeros", "random"]
"""What an input holds: pixels, a file, a text, its token ids, ones as in a mask, zeros, or random."""
DECLARED = ("picture", "text", "ids", "ones", "zeros", "random")
"""What people call them: a picture is sent as pixels or as a file, by the input's type."""
Layout = Literal["", "NCHW", "NHWC"]
PICTURES: tuple[Role, ...] = ("picture", "jpeg")
TEXTS: tuple[Role, ...] = ("text", "ids")


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a model.

    `dtype` is KServe's word, such as FP32. `shape` is that of one item, without the batch; -1 in it is as
    long as the item is, as files are. `layout` is a picture's, empty for others. `most`: random numbers and
    token ids are below it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    layout: Layout = ""
    most: int = 0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Input:
        """From plain values, whose shape may be a list."""
        return cls(**{**values, "shape": tuple(values["shape"])})


@dataclass(frozen=True, slots=True)
class Contract:
    """What requests must hold, and what answers do.

    `output` is the name of the output that is the vector, empty where answers have but one place for it.
    `dimension` is that of the vectors, and `unit` whether their length is 1: 0 and None until a first answer
    has shown them. `max_batch`: most items a request, 0 where no bound is known. `batched`: whether tensors
    have a dimension for the batch, before all others; without it a request is one item. `tokenizer` is the
    path of a `tokenizer.json`. `guesses` are sentences on what nobody has declared.
    """

    inputs: tuple[Input, ...] = ()
    preparation: Preparation = CLIP
    output: str = ""
    dimension: int = 0
    unit: bool | None = None
    max_batch: int = 0
    batched: bool = True
    tokenizer: str = ""
    guesses: tuple[str, ...] = ()

    @property
    def of_text(self) -> bool:
        """Whether texts are sent, and no pictures."""
        roles = {one.role for one in self.inputs}
        return bool(roles & {*TEXTS}) and not roles & {*PICTURES}

    @property
    def item(self) -> str:
        """What one of its items is called; neither picture nor text is one of random numbers."""
        if self.of_text:
            return "text"
        return "picture" if not self.inputs or {one.role for one in self.inputs} & {*PICTURES} else "item"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Contract:
        """From plain values, as `dataclasses.asdict` makes them."""
        return cls(
            **{
                **values,
                "inputs": tuple(map(Input.from_dict, values["inputs"])),
                "preparation": Preparation.from_dict(values["preparation"]),
                "guesses": tuple(values["guesses"]),
            }
        )


UNKNOWN = Contract()
"""Of a contract that is not known yet."""
