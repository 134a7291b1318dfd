"""Enough of Triton's Python backend to run a model.py in a test: inputs and outputs by DLPack, as there."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import numpy as np
import numpy.core.multiarray as multiarray

from server.triton.repository import PREPROCESS, TENSORS


class Input:
    """A request's tensor."""

    def __init__(self, values):
        self._values = values

    def as_numpy(self):
        return self._values

    def shape(self):
        return list(self._values.shape)

    def __dlpack__(self, **how):
        return self._values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class Output:
    """A response's tensor, whose capsule is taken as Triton takes it."""

    def __init__(self, name, capsule):
        self._capsule = capsule
        self.name, self.values = name, np.from_dlpack(self)

    @classmethod
    def from_dlpack(cls, name, capsule):
        return cls(name, capsule)

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0

    def __iter__(self):
        return iter((self.name, self.values))


class TritonError(Exception):
    """As Triton's, with the code that becomes HTTP 400."""

    INVALID_ARG = "invalid"

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


def utilities():
    """Stands for triton_python_backend_utils."""
    made = ModuleType("triton_python_backend_utils")
    made.get_input_tensor_by_name = lambda request, name: request[name]
    made.Tensor, made.TritonError = Output, TritonError
    made.InferenceResponse = lambda tensors=(), error=None: error or tensors
    return made


def load(path, monkeypatch, *libraries):
    """A model.py, with what it imports of Triton, and these libraries as empty ones."""
    # What reads strings lays a table of its own over numpy's, which goes with the module: it is put back.
    monkeypatch.setattr(multiarray, "_ARRAY_API", multiarray._ARRAY_API)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utilities())
    for library in libraries:
        monkeypatch.setitem(sys.modules, library, ModuleType(library))
    for shared in (TENSORS, PREPROCESS):
        monkeypatch.setitem(sys.modules, shared.stem, module_at(shared))
    return module_at(path)


def module_at(path):
    """The module that a file is."""
    spec = spec_from_file_location(f"loaded_{path.stem}", path)
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
