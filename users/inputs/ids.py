"""Token ids of texts: by the package `tokenizers` where the model's tokenizer.json is given, else random.

Random ones cost a server the same, and need neither.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from users.inputs.rows import ContractLike, InputLike

PACKAGE = "tokenizers==0.23.3"
"""Not among the requirements: most studies send no ids, and random ones are good enough."""
START, END = 49406, 49407
"""CLIP's start and end markers, the last two of its ids."""
PADS = ("<pad>", "[PAD]", "<|pad|>")
TYPES = ("INT32", "INT64")

Encode = Callable[[int], NDArray[np.int64]]
"""Gives the ids of the item at an index."""


def encoder(one: InputLike, contract: ContractLike, texts: Sequence[str]) -> Encode:
    """What makes an input's row of ids for each of the texts, in turn. Raises ValueError."""
    length = math.prod(one.shape)
    if one.dtype not in TYPES or length < 1 or length != one.shape[-1]:
        raise ValueError(
            f"input {one.name}: token ids are INT32 or INT64 of a known length, not {one.dtype}"
            f' {[*one.shape]}; give shape = {{ {one.name} = "B,77" }}'
        )
    if not contract.tokenizer:
        return lambda index: random_ids(index, length, one.most).reshape(one.shape)
    tokenizer = tokenizer_of(contract.tokenizer, length)
    return lambda index: ids_of(tokenizer, texts[index % len(texts)], one).reshape(one.shape)


def random_ids(index: int, length: int, most: int) -> NDArray[np.int64]:
    """Ids from 1 to below `most`, the same for an index in each process; between CLIP's marks if it has them.

    With `most` 0 the model is taken to be CLIP's own, of 49,408 ids.
    """
    most = most or END + 1
    top = START if most == END + 1 else most
    row = np.random.default_rng(index).integers(min(1, top - 1), top, length)
    if most > END:
        row[[0, -1]] = START, END
    return row


def tokenizer_of(path: str, length: int) -> Any:
    """The tokenizer of a file, which pads and cuts to `length`. Raises ValueError."""
    try:
        library = importlib.import_module("tokenizers")
    except ImportError as error:
        raise ValueError(
            f"tokenizer {path} needs the package tokenizers: pip install {PACKAGE}, or leave tokenizer out"
        ) from error
    try:
        made = library.Tokenizer.from_file(path)
        kept = made.padding or {}
        pad = kept.get("pad_id", next((i for name in PADS if (i := made.token_to_id(name)) is not None), 0))
        made.enable_padding(direction=kept.get("direction", "right"), pad_id=pad, length=length)
        made.enable_truncation(length)
    except Exception as error:  # it raises no other
        raise ValueError(
            f"tokenizer {path} is not readable ({error}); give the model's tokenizer.json, or leave it out"
        ) from error
    return made


def ids_of(tokenizer: Any, text: str, one: InputLike) -> NDArray[np.int64]:
    """The ids of a text. Raises ValueError where they are more than the model has."""
    row = np.array(tokenizer.encode(text).ids, dtype=np.int64)
    if one.most and row.max() >= one.most:
        raise ValueError(
            f"input {one.name}: the tokenizer gives id {row.max()}, but the model only knows those below"
            f" {one.most};"
            " give the model's own tokenizer.json"
        )
    return row
