"""A worker watches the garbage collector to its end; other tests are not to be watched."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def garbage_collector() -> Iterator[None]:
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before
