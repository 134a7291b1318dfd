"""Fault drills: one thing breaks in the middle of a short study, which must say what happened, and no more.

What it says is held against what it must say: exit code, failures by kind against what the server itself
counted, caveats, the named limit, that every answer is in the ledger, that the report can be made of what
is left, and that no process, no half file and no temporary folder stays behind. A machine so busy that the
generator is held up makes a study `client-bound`, which is exit code 3 whatever else it found; that is
excused, and all else judged as ever.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drills import of_network, of_servers, of_suite
from tests.drills.drill import Drill
from tests.drills.judging import differences
from tests.drills.rig import Rig
from users.inputs.images import load_images

DRILLS = (*of_servers.DRILLS, *of_network.DRILLS, *of_suite.DRILLS)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pictures: before its load a study asks for a golden embedding of each."""
    folder = tmp_path_factory.mktemp("pictures")
    for number, jpeg in enumerate(load_images("").jpegs[:2]):
        (folder / f"{number}.jpg").write_bytes(jpeg)
    return folder


@pytest.fixture
def rig(tmp_path: Path, pictures: Path) -> Iterator[Rig]:
    with Rig(tmp_path, pictures) as made:
        yield made


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("drill", DRILLS, ids=lambda drill: drill.name)
def test_what_a_study_says_when(drill: Drill, rig: Rig) -> None:
    if drill.needs_root and os.geteuid():
        pytest.skip("namespaces and mounts need root")
    if drill.needs and not drill.needs.exists():
        pytest.skip(f"{drill.needs} is not there: install the package libfaketime")
    seen = drill.carry_out(rig)
    assert differences(drill.expected, seen) == [], f"{drill.cause}: {seen.text[-3000:]}"


def test_every_fault_is_listed_once() -> None:
    names = {drill.name for drill in DRILLS}
    assert len(names) == len(DRILLS) == 39
