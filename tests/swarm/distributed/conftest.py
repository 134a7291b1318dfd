"""What a worker does to the garbage collector, which is that of all tests."""

import gc
from collections.abc import Iterator

import pytest

from swarm.distributed import worker


@pytest.fixture(autouse=True)
def garbage_collector() -> Iterator[None]:
    """A worker watches it to its end; other tests are not to be watched."""
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before


@pytest.fixture(autouse=True)
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a load a worker collects all there is: with what pytest holds that takes a fifth of a second."""
    monkeypatch.setattr(worker, "settle_memory", lambda: None)
