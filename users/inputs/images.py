"""What a study sends: pictures and texts, the same in the same order for each endpoint, and tensors.

Tensors are made when an endpoint that sends them asks: most studies send but one kind.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import io
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from users.inputs.ids import encoder
from users.inputs.pictures import (
    CROP,
    ImageSetError,
    default_jpegs,
    left_out,
    oddity,
    picture_paths,
    read_jpeg,
)
from users.inputs.preparation import prepared
from users.inputs.rows import (
    ContractLike,
    InputLike,
    RowPool,
    Rows,
    closed,
    form_of,
    random_row,
    row_bytes,
    type_of,
)

POOL_BYTES = 256_000_000
"""Memory that a study's pictures may take in a worker: as files, as tensors, and as the requests of a
cell, each on its own.
"""
One = TypeVar("One")
SIDES = range(64, 4097)
"""Of the built-in photographs in pixels; of the largest it takes a worker seconds to make them."""


@functools.cache
def captions() -> tuple[str, ...]:
    """The texts that are sent where nobody has given others: short captions of everyday scenes."""
    return tuple(Path(__file__).with_name("captions.txt").read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class ImageSet:
    """Pictures as JPEG files, and texts; what is made of them is kept, up to `pool_bytes`.

    `jpegs`: n byte strings; `source`: where they come from. `len()` is the number of pictures. `groups`: the
    indices of each kind of picture, none where there is but one. One of each kind follows another, so that
    the first pictures are some of each. `names`: of their files, if any. `left_out`: how many files of a
    folder are not among them, and why.

        images.tensor(contract.inputs[0], contract, (0, 1))  # float32 of shape [2, 3, 224, 224]
    """

    jpegs: tuple[bytes, ...]
    source: str
    texts: tuple[str, ...] = field(default_factory=captions)
    pool_bytes: int = POOL_BYTES
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)
    names: tuple[str, ...] = ()
    left_out: str = ""

    def __len__(self) -> int:
        return len(self.jpegs)

    @cached_property
    def _pool(self) -> RowPool:
        return RowPool(self.pool_bytes)

    @property
    def sha256(self) -> str:
        """A name for exactly these pictures in exactly this order, their kinds, and the texts of a user."""
        digest = hashlib.sha256()
        for jpeg in self.jpegs:
            digest.update(hashlib.sha256(jpeg).digest())
        if self.groups:
            digest.update(repr(sorted(self.groups.items())).encode())
        if self.texts != captions():
            digest.update(b"texts")
            for text in self.texts:
                digest.update(hashlib.sha256(text.encode()).digest())
        return digest.hexdigest()

    def text(self, index: int) -> str:
        """The text that goes with the picture at an index, over and over where there are fewer."""
        return self.texts[index % len(self.texts)]

    def odd(self) -> int:
        """Where the first picture is that servers may read in different ways; -1 where there is none."""
        return next((index for index, jpeg in enumerate(self.jpegs) if oddity(jpeg)), -1)

    def count(self, contract: ContractLike) -> int:
        """Over how many items an endpoint's requests rotate: all, or the first ones that fit in `pool_bytes`.

        They are texts where it takes no pictures. Raises ValueError.
        """
        roles = {one.role for one in contract.inputs}
        files = contract.of_text or not roles or "jpeg" in roles
        rows = {form_of(one, contract): row_bytes(one) for one in contract.inputs if one.role in ROWS}
        row = sum(rows.values())
        items = map(len, map(str.encode, self.texts) if contract.of_text else self.jpegs)
        fit = fitting((row + (size if files else 0) for size in items), self.pool_bytes)
        return max(fit, self._least(contract))

    def items(self, contract: ContractLike, kind: str = "") -> Sequence[int]:
        """Over which items an endpoint's requests of one kind rotate: those of `count`; texts have no kind.

        Raises ValueError.
        """
        count = self.count(contract)
        if contract.of_text or not kind:
            return range(count)
        return [index for index in self.groups[kind] if index < count]

    def _least(self, contract: ContractLike) -> int:
        """So many of the first items are sent, however large they are: a picture of each kind."""
        return 1 if contract.of_text else max(1, len(self.groups))

    def prepare(self, contract: ContractLike) -> None:
        """Make now whatever `tensor` will be asked for, which would else be made as requests are measured."""
        for index in range(self.count(contract)):
            for one in contract.inputs:
                if one.role in ROWS:
                    self._filled(one, contract, (index,))

    def tensor(self, one: InputLike, contract: ContractLike, indices: Sequence[int]) -> NDArray[Any]:
        """What goes into an input for the n items at `indices`, each below `count`: of shape [n, *shape].

        `picture`: by the contract's preparation. `jpeg`, `text`: bytes; a file of UINT8[-1] is padded with
        zeros to the longest of these. `ids`: of texts; `ones`, `zeros`: those. Others: random, but the same
        for an item in each process. An open side of `shape` is 1, but where files are padded.

        Raises ValueError.
        """
        if one.role in ROWS:
            return self._filled(one, contract, indices).take(indices)
        if one.role == "text":
            return column(one, [self.text(index).encode() for index in indices])
        files = [self.jpegs[index] for index in indices]
        return padded(one, files) if one.dtype == "UINT8" else column(one, files)

    def _filled(self, one: InputLike, contract: ContractLike, indices: Iterable[int]) -> Rows:
        return self._pool.filled(form_of(one, contract), lambda: self._begun(one, contract), indices)

    def _begun(self, one: InputLike, contract: ContractLike) -> Rows:
        items = len(self.texts if contract.of_text else self.jpegs)
        count = min(items, max(self._least(contract), self.pool_bytes // max(1, row_bytes(one))))
        return Rows(count, closed(one.shape), type_of(one), self._maker(one, contract))

    def _maker(self, one: InputLike, contract: ContractLike) -> Callable[[int], Any]:
        if one.role == "ids":
            return encoder(one, contract, self.texts)
        if one.role == "picture":
            place = (*sides(one), one.dtype, one.layout)
            return lambda index: prepared(opened(self.jpegs[index]), contract.preparation, *place)
        if one.role in ("ones", "zeros"):
            return lambda index: int(one.role == "ones")
        return lambda index: random_row(one, index)


ROWS = frozenset(("picture", "ids", "ones", "zeros", "random"))
"""The roles of inputs whose items all have one length."""


def fitting(sizes: Iterable[int], most: int) -> int:
    """How many of the first of these make no more than `most` together, but 1 at least.

    >>> fitting((3, 4, 5), 7), fitting((9, 1), 7)
    (2, 1)
    """
    return max(1, sum(total <= most for total in itertools.accumulate(sizes)))


def column(one: InputLike, values: Sequence[bytes]) -> NDArray[np.object_]:
    """Bytes, one string an item, of shape [n, *shape]. Raises ValueError."""
    shape = closed(one.shape)
    if one.dtype != "BYTES" or any(side != 1 for side in shape):
        either = "BYTES of shape [1], or UINT8 of shape [-1]" if one.role == "jpeg" else "BYTES of shape [1]"
        raise ValueError(
            f"input {one.name}: a {one.role} is sent as {either}, not as {one.dtype} {[*one.shape]}"
        )
    made = np.empty(len(values), dtype=np.object_)
    made[:] = values
    return made.reshape(-1, *shape)


def padded(one: InputLike, files: Sequence[bytes]) -> NDArray[np.uint8]:
    """Files as rows of shape [n, longest], with zeros behind the shorter ones. Raises ValueError."""
    if one.shape != (-1,):
        raise ValueError(f"input {one.name}: a jpeg of UINT8 has the shape [-1], not {[*one.shape]}")
    made = np.zeros((len(files), max(map(len, files))), dtype=np.uint8)
    for row, file in zip(made, files, strict=True):
        row[: len(file)] = np.frombuffer(file, dtype=np.uint8)
    return made


def sides(one: InputLike) -> tuple[int, int]:
    """Height and width of an input's picture. Raises ValueError."""
    layout = "B,224,224,3" if one.layout == "NHWC" else "B,3,224,224"
    at = 2 if one.layout == "NHWC" else 0
    if len(one.shape) != 3 or one.shape[at] != 3 or min(one.shape) < 1:
        raise ValueError(
            f"input {one.name}: a picture has 3 channels and a size, which {[*one.shape]} does not specify;"
            f' give shape = {{ {one.name} = "{layout}" }}'
        )
    height, width = one.shape[:2] if one.layout == "NHWC" else one.shape[1:]
    return height, width


def opened(jpeg: bytes) -> Image.Image:
    """The picture of a JPEG file."""
    return Image.open(io.BytesIO(jpeg))


def load_images(
    folder: str, texts: str = "", pool_bytes: int = POOL_BYTES, kinds: Sequence[str] = ()
) -> ImageSet:
    """The pictures of `folder` and the lines of the file `texts`; the default ones where these are empty.

    JPEG files travel as they are, others re-encoded as JPEG. `kinds` are names of folders in `folder`, or
    sides of the default pictures in pixels; all have equal parts of the memory. Raises ImageSetError.
    """
    lines = read_texts(Path(texts), pool_bytes) if texts else captions()
    most = pool_bytes // max(1, len(kinds))
    folders = [folder_of(folder, kind) for kind in kinds or [""]] if folder else []
    paths = [picture_paths(one, most) for one in folders]
    found = [files_of(own, most) for own in paths] or [default_jpegs(side_of(kind)) for kind in kinds or [""]]
    names, _ = in_turn(
        [[path.name for path in own][: len(jpegs)] for own, jpegs in zip(paths, found, strict=False)]
    )
    jpegs, indices = in_turn(found)
    groups = dict(zip(kinds, indices, strict=False))
    told = [f"{len(own)} of {kind}" for kind, own in groups.items()]
    missing = [left_out(one, len(own)) for one, own in zip(folders, found, strict=False)]
    missing = [
        f"{of}: {some}" if of else some for of, some in zip(kinds or [""], missing, strict=False) if some
    ]
    told += [f"left out: {'; '.join(missing)}"] if missing else []
    count = "1 file" if len(jpegs) == 1 else f"{len(jpegs)} files"
    source = f"{count} of {Path(folder).name}/" if folder else photographs()
    source += f" ({', '.join(told)})" if told else ""
    return ImageSet(jpegs, source, lines, pool_bytes, groups, names, "; ".join(missing))


def photographs() -> str:
    """Whose they are, and of which version."""
    return f"crops of scikit-image {importlib.metadata.version('scikit-image')}'s photographs"


def files_of(paths: Sequence[Path], most_bytes: int) -> list[bytes]:
    """The pictures of files as JPEG files, as far as they fit. Raises ImageSetError."""
    read = [read_jpeg(path) for path in paths]
    # Of PNG files it shows only now how large they are as JPEG.
    return read[: fitting(map(len, read), most_bytes)]


def in_turn(lists: Sequence[Sequence[One]]) -> tuple[tuple[One, ...], list[tuple[int, ...]]]:
    """One of each list in turn, as long as it has any; and where in that the ones of each list are.

    >>> in_turn([[b"a", b"b"], [b"c"]])
    ((b'a', b'c', b'b'), [(0, 2), (1,)])
    """
    order = sorted((place, number) for number, one in enumerate(lists) for place in range(len(one)))
    indices = [tuple(at for at, (_, of) in enumerate(order) if of == number) for number in range(len(lists))]
    return tuple(lists[number][place] for place, number in order), indices


def side_of(kind: str) -> int:
    """The side of built-in photographs in pixels, by default 224. Raises ImageSetError."""
    if kind and (not re.fullmatch("[1-9][0-9]{1,3}", kind) or int(kind) not in SIDES):
        raise ImageSetError(
            f"--picture-mix: {kind[:40]!r} is no side of 64 to 4,096 pixels; give e.g. 224:0.7,1024:0.3,"
            " or with --images the names of its folders"
        )
    return int(kind or CROP)


def folder_of(images: str, kind: str) -> Path:
    """Where a kind of picture lies in the folder of all. Raises ImageSetError."""
    found = Path(images) / kind
    if kind and (kind == ".." or Path(kind).name != kind or not found.is_dir()):
        raise ImageSetError(
            f"--picture-mix: {kind[:40]!r} is no folder in --images {images}; name those in it that hold"
            " JPEG or PNG files"
        )
    return found


def read_texts(path: Path, most_bytes: int) -> tuple[str, ...]:
    """The lines of a file that are not empty, as far as they fit; raises ImageSetError."""
    if not path.is_file():
        raise ImageSetError(f"--texts {path}: no such file; name one with a text on each line")
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
        whole = data if len(data) <= most_bytes else data[: data.rfind(b"\n") + 1]
        lines = [line.strip() for line in whole.decode("utf-8-sig").split("\n")]
    except (OSError, UnicodeDecodeError) as error:
        raise ImageSetError(
            f"--texts {path} is not readable as UTF-8; save it as UTF-8, one text per line"
        ) from error
    if not any(lines):
        raise ImageSetError(f"--texts {path}: it has no text; give one on each line")
    return tuple(line for line in lines if line)
