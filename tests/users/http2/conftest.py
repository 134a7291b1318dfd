"""A listener for each test, and a watch on what gevent's hub is told of."""

from collections.abc import Iterator
from typing import Any

import gevent
import pytest

from tests.users.http2.callers import Listener


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Where the client connects."""
    made = Listener()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _nothing_reaches_the_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a callback of the loop or a greenlet raises is for gevent's hub to print: none may here."""
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(gevent.get_hub(), "handle_error", lambda *what: told.append(what))
    yield
    gevent.sleep(0)
    assert told == []
