"""What tests of several rooms are given. Nothing is imported at first: Locust must patch before all else."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.certificates import Certificates


def pytest_configure() -> None:
    """What tests start heeds Ctrl-C and a hangup as in a terminal, also where the tests are a background job.

    Such a job ignores them, and what it starts inherits that.
    """
    for number, own in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, own)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates good and bad."""
    from tests.certificates import Certificates

    return Certificates(tmp_path_factory.mktemp("certificates"))
