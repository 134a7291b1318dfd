"""What a study sends: pictures and texts, the same in the same order for each endpoint, and tensors.

Tensors are made when an endpoint that sends them asks: most studies send but one kind.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import gevent
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from users.inputs.ids import encoder
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
CROP = 224
DEFAULT_COUNT = 64
MOST_PIXELS = 40_000_000
"""As many as the service accepts: a file of a few kilobytes may claim billions."""
SUFFIXES = frozenset((".jpg", ".jpeg", ".png"))

PHOTOGRAPHS = (
    "astronaut.png", "brick.png", "camera.png", "chelsea.png", "clock_motion.png", "coffee.png", "coins.png",
    "grass.png", "gravel.png", "hubble_deep_field.jpg", "ihc.png", "moon.png", "motorcycle_left.png",
    "retina.jpg", "rocket.jpg",
)  # fmt: skip
SMALLEST_BYTES, TARGET_BYTES, LARGEST_BYTES = 5_000, 10_000, 15_000


class ImageSetError(Exception):
    """The pictures or the texts cannot be used; the text is a sentence for a person."""


@functools.cache
def captions() -> tuple[str, ...]:
    """The texts that are sent where nobody has given others: short captions of everyday scenes."""
    return tuple(Path(__file__).with_name("captions.txt").read_text(encoding="utf-8").splitlines())


@dataclass(frozen=True)
class ImageSet:
    """Pictures as JPEG files, and texts; what is made of them is kept, up to `pool_bytes`.

    `jpegs`: n byte strings; `source`: where they come from. `len()` is the number of pictures.

        images.tensor(contract.inputs[0], contract, (0, 1))  # float32 of shape [2, 3, 224, 224]
    """

    jpegs: tuple[bytes, ...]
    source: str
    texts: tuple[str, ...] = field(default_factory=captions)
    pool_bytes: int = POOL_BYTES

    def __len__(self) -> int:
        return len(self.jpegs)

    @cached_property
    def _pool(self) -> RowPool:
        return RowPool(self.pool_bytes)

    @property
    def sha256(self) -> str:
        """A name for exactly these pictures in exactly this order, and for the texts if they are a user's."""
        digest = hashlib.sha256()
        for jpeg in self.jpegs:
            digest.update(hashlib.sha256(jpeg).digest())
        if self.texts != captions():
            digest.update(b"texts")
            for text in self.texts:
                digest.update(hashlib.sha256(text.encode()).digest())
        return digest.hexdigest()

    def text(self, index: int) -> str:
        """The text that goes with the picture at an index, over and over where there are fewer."""
        return self.texts[index % len(self.texts)]

    def count(self, contract: ContractLike) -> int:
        """Over how many items an endpoint's requests rotate: all, or the first ones that fit in `pool_bytes`.

        They are texts where it takes no pictures. Raises ValueError.
        """
        roles = {one.role for one in contract.inputs}
        files = contract.of_text or not roles or "jpeg" in roles
        rows = {form_of(one, contract): row_bytes(one) for one in contract.inputs if one.role in ROWS}
        row = sum(rows.values())
        items = map(len, map(str.encode, self.texts) if contract.of_text else self.jpegs)
        return fitting((row + (size if files else 0) for size in items), self.pool_bytes)

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
        count = min(items, max(1, self.pool_bytes // max(1, row_bytes(one))))
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


def load_images(folder: str, texts: str = "", pool_bytes: int = POOL_BYTES) -> ImageSet:
    """The pictures of `folder` and the lines of the file `texts`; the default ones where these are empty.

    JPEG files travel as they are, PNG files re-encoded as JPEG. Raises ImageSetError.
    """
    lines = read_texts(Path(texts), pool_bytes) if texts else captions()
    if not folder:
        jpegs, version = default_jpegs(DEFAULT_COUNT), importlib.metadata.version("scikit-image")
        return ImageSet(tuple(jpegs), f"crops of scikit-image {version}'s photographs", lines, pool_bytes)
    read = [read_jpeg(path) for path in picture_paths(Path(folder), pool_bytes)]
    # Of PNG files it shows only now how large they are as JPEG.
    jpegs = read[: fitting(map(len, read), pool_bytes)]
    return ImageSet(tuple(jpegs), f"{len(jpegs)} files of {Path(folder).name}/", lines, pool_bytes)


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


def picture_paths(folder: Path, most_bytes: int = POOL_BYTES) -> list[Path]:
    """JPEG and PNG files of a folder by name; evenly spread over it where all are more than the bound."""
    if not folder.is_dir():
        raise ImageSetError(f"--images {folder}: no such folder; name one that holds JPEG or PNG files")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    if not found:
        raise ImageSetError(f"--images {folder}: no .jpg, .jpeg or .png file in it")
    return [found[index] for index in spread([size_of(path) for path in found], most_bytes)]


def size_of(path: Path) -> int:
    """The bytes of a file; 0 where nothing can be read, which shows when it is."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def spread(sizes: Sequence[int], most: int) -> list[int]:
    """Indices evenly spread over files of these sizes, as many as make no more than `most`, but 1 at least.

    >>> spread([2, 2, 2, 2], 8), spread([2, 2, 2, 2], 5), spread([9, 9], 5)
    ([0, 1, 2, 3], [0, 2], [0])
    """
    count = len(sizes)
    while True:
        chosen = [number * len(sizes) // count for number in range(count)]
        total = sum(sizes[index] for index in chosen)
        if total <= most or count == 1:
            return chosen
        count = max(1, min(count - 1, count * most // total))


def read_jpeg(path: Path) -> bytes:
    """One picture as JPEG bytes; raises ImageSetError where the file is no picture."""
    try:
        if not path.is_file():
            # A pipe would wait for a writer.
            raise OSError("not a regular file")
        gevent.sleep(0)
        data = path.read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ImageSetError(f"--images: {path} has more than {MOST_PIXELS:,} pixels; scale it down")
            image.load()
            return data if image.format == "JPEG" else encode(image.convert("RGB"), 90)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ImageSetError(f"--images: {path} is not a readable JPEG or PNG picture; remove it") from error


def default_jpegs(count: int) -> list[bytes]:
    """`count` distinct 224-pixel crops of photographs, each a JPEG of 5 to 15 KB."""
    crops = [photograph_crops(photograph_folder() / name) for name in PHOTOGRAPHS]
    # One of each photograph in turn: neighbours in the set come from unlike pictures.
    in_turn = (crop for crop in itertools.chain(*itertools.zip_longest(*crops)) if crop is not None)
    jpegs = (encode_near(crop, TARGET_BYTES) for crop in in_turn)
    fit = (jpeg for jpeg in jpegs if SMALLEST_BYTES <= len(jpeg) <= LARGEST_BYTES)
    found = list(itertools.islice(fit, count))
    if len(found) < count:
        raise ImageSetError(
            f"scikit-image's photographs gave only {len(found)} of {count} pictures; use --images DIR"
        )
    return found


def photograph_folder() -> Path:
    """Where scikit-image keeps its pictures, found without importing it (which is slow)."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        raise ImageSetError(
            "scikit-image is not installed; install requirements-client.lock or use --images DIR"
        )
    return Path(spec.origin).parent / "data"


def photograph_crops(path: Path) -> list[Image.Image]:
    """Squares of 224 pixels on a grid over a photograph, at most 8, overlapping by half at most."""
    with Image.open(path) as photograph:
        image = photograph.convert("RGB")
    corners = [
        (left, top)
        for top in range(0, image.height - CROP + 1, CROP // 2)
        for left in range(0, image.width - CROP + 1, CROP // 2)
    ]
    chosen = corners[:: max(1, len(corners) // 8)][:8]
    return [image.crop((left, top, left + CROP, top + CROP)) for left, top in chosen]


def encode_near(image: Image.Image, target_bytes: int) -> bytes:
    """The JPEG of a quality from 30 to 95 whose size lies nearest to `target_bytes`."""
    return min(
        (encode(image, quality) for quality in range(30, 96, 5)),
        key=lambda jpeg: abs(len(jpeg) - target_bytes),
    )


def encode(image: Image.Image, quality: int) -> bytes:
    """JPEG bytes of a picture."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
