"""Where servers keep what they build: never in a path that tritonserver's shell takes apart."""

import os
import subprocess
import sys

import pytest

from server.cache import cache, cache_folder
from server.errors import SetUpError
from server.spec import ROOT

FIX = "set INFERSWARM_CACHE to a writable folder, as an absolute path without spaces or quotes."


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A temporary folder of the test's, in which the last resort lies."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    return tmp_path / f"inferswarm-{os.getuid()}"


@pytest.mark.parametrize("name", ["a b", "it's", 'a"b', "a:b", "a$b", "a;b", "ü"])
def test_a_home_that_a_shell_would_take_apart_is_left_alone(name, tmp_path, temporary):
    home = tmp_path / name
    home.mkdir()
    assert cache_folder({"HOME": str(home)}) == temporary
    both = {"XDG_CACHE_HOME": str(home), "HOME": str(tmp_path)}
    assert cache_folder(both) == tmp_path / ".cache/inferswarm"
    with pytest.raises(SetUpError) as caught:
        cache_folder({"INFERSWARM_CACHE": str(home)})
    assert str(caught.value) == f"INFERSWARM_CACHE={home} cannot be used: {FIX}"


def test_the_first_that_can_be_written_is_taken(tmp_path, temporary):
    base, home = tmp_path / "base", tmp_path / "home"
    environ = {"XDG_CACHE_HOME": str(base), "HOME": str(home)}
    assert cache_folder(environ) == base / "inferswarm"
    assert cache_folder({**environ, "INFERSWARM_CACHE": str(tmp_path / "own")}) == tmp_path / "own"
    # A home that is none, as that of many services.
    for nothing in ("/dev/null", "/proc/self", "/proc/nobody"):
        assert cache_folder({"HOME": nothing}) == temporary
    with pytest.raises(SetUpError):
        cache_folder({"INFERSWARM_CACHE": "relative"})


def test_a_folder_that_somebody_else_has_laid_there_is_not_taken(tmp_path, temporary, monkeypatch):
    (tmp_path / "theirs").mkdir()
    temporary.symlink_to(tmp_path / "theirs")
    monkeypatch.setattr("server.cache.temporary", lambda: [temporary])
    with pytest.raises(SetUpError) as caught:
        cache_folder({})
    assert str(caught.value) == f"no writable folder for what servers build: {FIX}"
    temporary.unlink()
    temporary.mkdir()
    assert cache_folder({}) == temporary
    monkeypatch.setattr("os.getuid", lambda: temporary.stat().st_uid + 1)
    with pytest.raises(SetUpError):
        cache_folder({})


def test_a_link_to_a_larger_disk_is_followed_in_a_home(tmp_path):
    (tmp_path / "large").mkdir()
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "inferswarm").symlink_to(tmp_path / "large")
    assert cache_folder({"HOME": str(tmp_path)}) == tmp_path / ".cache" / "inferswarm"


def test_it_is_its_owners_alone(tmp_path):
    place = cache("logs", {"INFERSWARM_CACHE": str(tmp_path / "a" / "b")})
    assert place == tmp_path / "a" / "b" / "logs"
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert list(place.parent.iterdir()) == []


def test_make_clean_is_told_where_it_is(tmp_path):
    refusal = f"INFERSWARM_CACHE=a b cannot be used: {FIX}\n"
    for given, told in ((str(tmp_path), (0, f"{tmp_path}\n", "")), ("a b", (1, "", refusal))):
        environ, command = {**os.environ, "INFERSWARM_CACHE": given}, [sys.executable, "-m", "server.cache"]
        done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == told
