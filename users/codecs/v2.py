"""What codecs of the KServe V2 protocol have in common: the tensors of a request, the vector's numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from tritonclient.utils import serialize_byte_tensor

from users.codecs.base import Codec
from users.contract import Contract, Input
from users.errors import ErrorKind, RequestError
from users.inputs.images import ImageSet
from users.inputs.rows import row_bytes

REGIONS = Path("/dev/shm")
"""Where Linux has regions of shared memory: each is a file."""
ALIGNED_BYTES = 4_096
"""Each input begins at a page."""
FLOATS: Mapping[str, type] = {"FP32": np.float32, "FP16": np.float16, "FP64": np.float64}
"""The types of vectors; NumPy has no BF16."""
POOL = "choose a pooled output with --output NAME, or pool in the model"
"""What to do where a model gives a vector a token."""


class MemoryPlace(NamedTuple):
    """Where a tensor lies in a region of shared memory, in bytes."""

    region: str
    offset: int
    size: int


class SharedInputs:
    """Where the items of a contract's inputs lie in a region: input after input, each one item after another.

    The first of `count` items come again at an input's end, so that the items of every request of at most
    `most` are neighbours, as `rotation` has them. Raises ValueError for a type that NumPy does not have.
    """

    def __init__(self, region: str, contract: Contract, count: int, most: int) -> None:
        self.region, self.count, self.rows = region, count, count + most - 1
        self._starts, self.size = dict[str, int](), 0
        for one in contract.inputs:
            self._starts[one.name] = self.size
            self.size += -(-self.rows * row_bytes(one) // ALIGNED_BYTES) * ALIGNED_BYTES

    @classmethod
    def of(cls, contract: Contract, prefix: str, cell: str, images: ImageSet, most: int) -> Self:
        """Those of a cell's requests: the same in the process that writes them, and in each that sends."""
        name = f"{prefix}-{zlib.crc32(cell.encode()):08x}"
        return cls(name, contract, images.count(contract), most)

    def place(self, one: Input, indices: Sequence[int]) -> MemoryPlace:
        """Of the items of a request. Raises ValueError where they are no neighbours."""
        first, row = indices[0], row_bytes(one)
        if any(index != (first + at) % self.count for at, index in enumerate(indices)):
            raise ValueError("items that are no neighbours cannot lie in shared memory")
        return MemoryPlace(self.region, self._starts[one.name] + first * row, len(indices) * row)


class V2Codec(Codec):
    """Tensors of the contract's inputs in, the output that it names out.

    `shared`: where the inputs of its requests lie instead, which then only name the places. Answers come over
    the wire.
    """

    takes_places = True
    shared: SharedInputs | None = None

    def tensors(self, images: ImageSet, indices: Sequence[int]) -> Iterator[tuple[Input, NDArray]]:  # type: ignore[type-arg]
        """Each input with what it holds: of shape [items, …], without the first where nothing is batched."""
        contract = self.endpoint.contract
        for one in contract.inputs:
            made = images.tensor(one, contract, indices)
            yield one, made if contract.batched else made[0]

    def shape_of(self, one: Input, indices: Sequence[int]) -> list[int]:
        """That of an input's tensor."""
        return [*([len(indices)] if self.endpoint.contract.batched else []), *one.shape]


def numbers_of(datatype: str) -> type:
    """NumPy's type of a vector's numbers. Raises ValueError."""
    if datatype not in FLOATS:
        raise ValueError(f"a vector of {datatype}")
    return FLOATS[datatype]


def absent(name: str, given: Sequence[str]) -> RequestError:
    """What is wrong with an answer that lacks the output with the vector."""
    return RequestError(ErrorKind.BAD_REPLY, f"an answer without output {name!r}; it has {[*given]}")


def rows(vector: NDArray[np.floating], shape: Sequence[int], contract: Contract) -> NDArray[np.float32]:
    """float32 of shape [items, dimension] from an output's numbers, in whatever shape it says it has.

    Raises RequestError where there are none, and where an item has several rows, as of tokens.
    """
    if not vector.size:
        raise RequestError(ErrorKind.BAD_REPLY, f"output {contract.output} is empty, of shape {[*shape]}")
    if vector.ndim == 2 == len(shape) and contract.batched and vector.dtype == np.float32:
        return vector
    if sum(side != 1 for side in shape[contract.batched :]) > 1:
        raise RequestError(
            ErrorKind.BAD_REPLY,
            f"output {contract.output} has shape {[*shape]}: several vectors an item; {POOL}",
        )
    items = int(shape[0]) if contract.batched and shape else 1
    made = vector.reshape(items, -1)
    return made if made.dtype == np.float32 else made.astype(np.float32)


def raw(tensor: NDArray) -> bytes:  # type: ignore[type-arg]
    """Triton's binary form of a tensor; a file goes behind its length in 4 bytes, the lowest first."""
    return bytes(serialize_byte_tensor(tensor).item()) if tensor.dtype == np.object_ else tensor.tobytes()
