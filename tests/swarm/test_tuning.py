"""What is said by a worker whose master does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from swarm.tuning import telling


def test_a_worker_says_once_that_no_master_answers_and_how_long_it_tries(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runner: Any = SimpleNamespace(retry=0, master_host="10.0.0.5", master_port=5557)

    def connect(runner: Any) -> None:
        runner.retry += 1
        if runner.retry < 4:
            telling(connect)(runner)

    telling(connect)(runner)
    said = capsys.readouterr().err
    assert said.count("inferswarm: no master answers at 10.0.0.5:5557: is it there") == 1
    assert "--master-bind-host" in said
    assert said.endswith("Trying for 5 minutes\n")
