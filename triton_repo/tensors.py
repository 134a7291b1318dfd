"""Arrays in and out of Triton's Python backend by DLPack, and what models do alike with them.

A copy of this file lies beside every model.py.

That backend was built for numpy 1. With numpy 2 its `Tensor(name, array)` sends 0 bytes, and its
`as_numpy()` reads as many; DLPack is the same for every numpy. The capsules are made here by ctypes, since
numpy's own look after their name when they go, which the backend has changed by then, and complain each time.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.core.multiarray as multiarray
import triton_python_backend_utils as pb_utils

UNIT_VECTORS = np.full((32, 512), 512**-0.5, np.float32)
"""The answer of models that compute nothing, for the largest batch; smaller ones get its beginning."""
CPU = 1
CODES = {"i": 0, "u": 1, "f": 2}
"""Of a dtype, by numpy's letter for its kind."""
NAME = b"dltensor"
"""Of a capsule that nobody has taken; it must stay in memory for as long as any capsule does."""


class Tensor(ctypes.Structure):
    """DLTensor of DLPack 0.8 (dmlc/dlpack, include/dlpack/dlpack.h)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensor: a tensor, and what its taker calls when it has done with it."""


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))

held: dict[int, tuple[Managed, Any, np.ndarray]] = {}
"""What Triton has not yet let go: the structure by its address, its shape, and the array."""


table_of_its_own: list[Any] = []
"""Of read_strings, which must stay in memory."""


@DELETER
def let_go(managed: Any) -> None:
    """Triton has copied the array."""
    held.pop(ctypes.addressof(managed.contents), None)


FUNCTIONS, MAKE_ARRAY = 300, 94
"""Of numpy's table of functions: how many the backend may ask for, and where PyArray_NewFromDescr stands."""
MAKE = ctypes.PYFUNCTYPE(
    *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
    *(ctypes.POINTER(ctypes.c_ssize_t), ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p),
)
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
capsule_pointer.restype = ctypes.c_void_p
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
new_capsule.restype = ctypes.py_object


def array_of(request: Any, name: str) -> np.ndarray:
    """An input of a request, not copied; it holds for as long as the request does. Not for BYTES."""
    return np.from_dlpack(pb_utils.get_input_tensor_by_name(request, name))


def tensor_of(name: str, array: np.ndarray) -> Any:
    """An output of a response, of any shape; its memory is held until Triton has copied it."""
    return pb_utils.Tensor.from_dlpack(name, capsule(np.ascontiguousarray(array)))


def images_of(request: Any) -> int:
    """How many images a request has, without touching the pixels, which stay where Triton has put them."""
    return pb_utils.get_input_tensor_by_name(request, "input").shape()[0]


def unit_vectors(images: int) -> Any:
    """A response with the same unit vector for each image, FP32 [images, 512]."""
    return pb_utils.InferenceResponse([tensor_of("embedding", UNIT_VECTORS[:images])])


def embedded_together(requests: list[Any], embed: Callable[[np.ndarray], np.ndarray]) -> list[Any]:
    """The responses to the requests of one dynamic batch; `embed` is given the pixels of all of them."""
    inputs = [array_of(request, "input") for request in requests]
    pixels = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
    ends = np.cumsum([len(one) for one in inputs])[:-1]
    parts = np.split(embed(pixels), ends)
    return [pb_utils.InferenceResponse([tensor_of("embedding", part)]) for part in parts]


def read_strings() -> None:
    """Have BYTES inputs read rightly, which DLPack does not cover; call it before the first request.

    The backend takes the size of an item from where numpy 1 kept it. There numpy 2 has flags, which are 0, so
    that every byte of an input is made a copy of its first. It is given a table of numpy's functions of its
    own, of which one puts strides of 0 right.
    """
    table = (ctypes.c_void_p * FUNCTIONS).from_address(capsule_pointer(multiarray._ARRAY_API, None))
    copy = (ctypes.c_void_p * FUNCTIONS)(*table)
    make = MAKE(table[MAKE_ARRAY])

    @MAKE
    def make_array(kind: Any, dtype: Any, ndim: int, shape: Any, strides: Any, *others: Any) -> Any:
        return make(kind, dtype, ndim, shape, strides if strides and any(strides[:ndim]) else None, *others)

    copy[MAKE_ARRAY] = ctypes.cast(make_array, ctypes.c_void_p)
    table_of_its_own.extend((make_array, copy))
    multiarray._ARRAY_API = new_capsule(ctypes.addressof(copy), None, None)


def capsule(array: np.ndarray) -> Any:
    """A contiguous array of integers or floats as a DLPack capsule, to be taken: it frees nothing itself."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    code, bits = CODES[array.dtype.kind], 8 * array.dtype.itemsize
    tensor = Tensor(array.ctypes.data, CPU, 0, array.ndim, code, bits, 1, shape, None, 0)
    managed = Managed(tensor, None, let_go)
    address = ctypes.addressof(managed)
    held[address] = (managed, shape, array)
    return new_capsule(address, NAME, None)
