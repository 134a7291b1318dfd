"""What codecs of the KServe V2 protocol have in common: the tensors of a request, the vector's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tritonclient.utils import serialize_byte_tensor

from users.codecs.base import Codec
from users.contract import Input
from users.inputs.images import ImageSet

FLOATS: Mapping[str, type] = {"FP32": np.float32, "FP16": np.float16, "FP64": np.float64}
"""The types of vectors; NumPy has no BF16."""


class V2Codec(Codec):
    """Tensors of the contract's inputs in, the output that it names out."""

    def tensors(self, images: ImageSet, indices: Sequence[int]) -> Iterator[tuple[Input, NDArray]]:  # type: ignore[type-arg]
        """Each input with what it holds: of shape [items, …], without the first where nothing is batched."""
        contract = self.endpoint.contract
        for one in contract.inputs:
            made = images.tensor(one, contract, indices)
            yield one, made if contract.batched else made[0]


def numbers_of(datatype: str) -> type:
    """NumPy's type of a vector's numbers. Raises ValueError."""
    if datatype not in FLOATS:
        raise ValueError(f"a vector of {datatype}")
    return FLOATS[datatype]


def rows(vector: NDArray[np.floating], shape: Sequence[int], batched: bool) -> NDArray[np.float32]:
    """float32 of shape [items, dimension] from an output's numbers, in whatever shape it says it has."""
    if vector.ndim == 2 == len(shape) and batched and vector.dtype == np.float32:
        return vector
    items = int(shape[0]) if batched and shape else 1
    made = vector.reshape(items, -1)
    return made if made.dtype == np.float32 else made.astype(np.float32)


def raw(tensor: NDArray) -> bytes:  # type: ignore[type-arg]
    """Triton's binary form of a tensor; a file goes behind its length in 4 bytes, the lowest first."""
    return bytes(serialize_byte_tensor(tensor).item()) if tensor.dtype == np.object_ else tensor.tobytes()
