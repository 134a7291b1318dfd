"""Which process made something, and whether it is gone."""

import os
import subprocess

from swarm.owner import identity, is_gone, started
from tests.processes import eventually


def test_a_dead_process_has_no_start() -> None:
    with subprocess.Popen(["true"]) as done:
        assert eventually(lambda: started(done.pid) == 0), "not even before it is waited for"
    assert started(os.getpid()) > 0


def test_an_owner_is_known_by_its_start_and_by_whose_ids_are_meant() -> None:
    pid, _, space = identity().split("-")
    assert not is_gone(f"inferswarm-{identity()}-7-servers")
    assert is_gone(f"inferswarm-{pid}-1-{space}-7-servers"), "an id that came again"
    assert not is_gone(f"inferswarm-{pid}-1-1-7-servers"), "of another container, as far as anybody knows"
    assert not is_gone("inferswarm-else")
