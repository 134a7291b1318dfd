"""What tests of several packages of reports are given."""

import pytest

from tests.reports.compare_book import written


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two studies that are compared."""
    return written(tmp_path_factory.mktemp("results"))
