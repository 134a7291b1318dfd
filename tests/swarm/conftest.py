"""Locust patches sockets and threads when imported, so it comes before anything a test imports."""

import locust  # noqa: F401

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.swarm.stand import Stand


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    yield made
    made.ledger.close()
