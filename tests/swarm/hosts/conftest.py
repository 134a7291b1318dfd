"""The manifests' command, as one that succeeds and as one that refuses."""

from __future__ import annotations

import pytest

from swarm.hosts.k8s_command import main
from tests.swarm.hosts.clusters import Made, Make, Sentence, by_name


@pytest.fixture
def make(capsys: pytest.CaptureFixture[str]) -> Make:
    """Runs the command, which must succeed."""

    def run(*arguments: str) -> Made:
        assert main([*arguments]) == 0
        return by_name(capsys.readouterr().out)

    return run


@pytest.fixture
def sentence(capsys: pytest.CaptureFixture[str]) -> Sentence:
    """Runs the command, which must refuse with one line and print nothing else."""

    def run(*arguments: str) -> str:
        assert main([*arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err.strip()

    return run
