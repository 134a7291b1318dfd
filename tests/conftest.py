"""What tests of several rooms are given. Nothing is imported at first: Locust must patch before all else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.certificates import Certificates


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates good and bad."""
    from tests.certificates import Certificates

    return Certificates(tmp_path_factory.mktemp("certificates"))
