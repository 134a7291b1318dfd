"""hosts.toml, link and load profiles with something wrong: a sentence names file and field; none hangs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given

from swarm.errors import UsageError
from swarm.hosts.hosts_file import read_hosts
from swarm.links.profiles import read_profiles
from swarm.options.profile_file import profile_text
from tests.bad_input import Tally, is_clear, tried
from tests.bad_toml import bad_tomls

pytestmark = pytest.mark.slow

TALLY = Tally(hosts=640, profiles=640, courses=640)
HOST = {
    "name": '"a"', "kind": '"ssh"', "workers": "2", "address": '"u@h"', "port": "22", "path": '"x"',
    "python": '"python3"', "identity": '"k"', "config": '"c"',
}  # fmt: skip
PROFILE = {
    "about": '"a"', "published": '"b"', "one_way_ms": "1.0", "mbit_per_s": "10", "loss_pct": "1",
    "queue_bytes": "15000", "burst_bytes": "15000", "congestion_control": '"bbr"',
}  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad") / "f.toml"


COURSE = {"points": "[[0, 0.5], [20, 1.0], [20, 0]]", "stages": '["a"]'}


def read_course(path: Path) -> str:
    try:
        return profile_text(str(path))
    except ValueError as error:
        raise UsageError(f"{path} {error}") from None


def refusal(read: Callable[[Path], object], path: Path) -> str:
    """The sentence of a file that is refused, which names it; empty where it is taken."""
    try:
        read(path)
    except UsageError as error:
        said = str(error)
    else:
        return ""
    assert said.startswith(str(path))
    assert is_clear(said)
    return said


@tried(700)
@given(bad_tomls(["[[host]]", "[host]", "", "[[hosts]]"], HOST))
def test_hosts(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    if refusal(read_hosts, path):
        TALLY.refused("hosts", text)


@tried(700)
@given(bad_tomls(["[mine]", "[none]", "", '["a b"]', "[[mine]]"], PROFILE))
def test_profiles(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    if refusal(read_profiles, path):
        TALLY.refused("profiles", text)


@tried(700)
@given(bad_tomls(["", "[course]"], COURSE))
def test_courses(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    if refusal(read_course, path):
        TALLY.refused("courses", text)


@pytest.mark.parametrize("read", [read_hosts, read_profiles, read_course])
@pytest.mark.parametrize("kind", ["none", "pipe", "folder", "endless"])
def test_what_is_no_file(tmp_path: Path, read: Callable[[Path], object], kind: str) -> None:
    path = tmp_path / "f.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    assert "cannot be read (" in refusal(read, path)


def test_enough_were_refused(capsys: pytest.CaptureFixture[str]) -> None:
    TALLY.tell(capsys)
