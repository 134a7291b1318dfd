"""Which Python an environment is made with, its shared library, and what is said where there is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server import interpreter
from server.errors import SetUpError
from server.interpreter import Interpreter, choose, fetch, find_libpython, lack
from server.spec import ROOT

TOO_OLD = (
    "inferswarm needs Python 3.11 to 3.13, and odd is 3.10: "
    "install one, or run `make PYTHON=/path/to/python3.12`."
)
INSTEAD = (
    "give your own servers' addresses (`make step7 ARGS='--onnx-http-url HOST:PORT'`), "
    "or test only the PyTorch service (`make step7 ARGS='--endpoints pytorch-http'`)."
)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes up an interpreter, with its shared library or without."""
    monkeypatch.setenv("INFERSWARM_CACHE", str(tmp_path / "cache"))

    def make(
        name, version=(3, 13, 5), library=True, prefix="/opt", has_venv=True, machine=("Linux", "x86_64")
    ):
        folder = tmp_path / name
        folder.mkdir()
        of = Interpreter(name, version, prefix, (str(folder),), has_venv, machine)
        if library:
            (folder / of.library).touch()
        return of

    return make


def test_this_one_runs_the_suite():
    of = interpreter.this()
    assert of.version == tuple(sys.version_info[:3])
    assert find_libpython().name == of.library
    assert interpreter.asked(sys.executable) == of
    assert interpreter.asked("/no/python") is None
    assert choose(of, embedded=True, alone=True) == (of, "")


def test_the_first_that_can_do_all_is_taken(made):
    new, bare, whole = made("new", (3, 14, 0)), made("bare", library=False), made("whole", (3, 12, 1))
    assert choose(whole, True, False, lambda: [made("another")]) == (whole, "")
    assert choose(new, True, False, lambda: [bare, whole]) == (whole, "")
    # One that was asked for by name is taken or refused.
    with pytest.raises(SetUpError):
        choose(new, True, True, lambda: [whole])
    assert choose(new, False, True, lambda: [whole])[0] == new


@pytest.mark.parametrize("alone", [True, False])
def test_what_python_314_cannot_do_is_said_before_anything_is_installed(made, alone):
    new = made("python3.14", (3, 14, 0))
    fix = f"install Python 3.11 to 3.13 and remove .venv, {INSTEAD}"
    text = f"tritonserver's wheel has no stub for Python 3.14: {fix}"
    with pytest.raises(SetUpError) as caught:
        choose(new, True, alone, list)
    assert str(caught.value) == text
    assert choose(new, False, alone, list) == (new, text)


def test_another_machine_can_only_ask_servers_elsewhere(made):
    arm = made("arm", machine=("Linux", "aarch64"))
    assert lack(arm) == f"tritonserver's wheel runs on Linux x86-64 only: {INSTEAD}"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"version": (3, 10, 2)}, TOO_OLD),
        ({"has_venv": False}, "odd cannot make virtual environments: run `apt-get install python3-venv`."),
    ],
)
def test_one_that_cannot_make_an_environment_is_refused_at_once(made, given, text):
    odd = made("odd", **given)
    for embedded in (True, False):
        with pytest.raises(SetUpError) as caught:
            choose(odd, embedded, True)
        assert str(caught.value) == text


def apt(served, calls):
    """Stands for apt-get, dpkg and dpkg-query: an archive that has `served`."""

    def run(command, folder):
        calls.append(command[-1])
        if command[0] == "dpkg-query":
            return "3.13.5-2"
        if command[0] == "dpkg":
            lib = Path(command[-1], "usr/lib/some-arch")
            lib.mkdir(parents=True)
            (lib / "libpython3.13.so.1.0").write_text(Path(command[-2]).read_text())
        elif "download" in command:
            if command[-1] not in served:
                return None
            (folder / "some.deb").write_text(command[-1])
        return ""

    return run


@pytest.mark.parametrize("served", ["libpython3.13=3.13.5-2", "libpython3.13t64=3.13.5-2", "libpython3.13"])
def test_the_distributions_library_is_fetched_and_kept(made, monkeypatch, served):
    monkeypatch.setattr(interpreter.shutil, "which", lambda _: "/usr/bin/apt-get")
    of, calls = made("bare", library=False, prefix="/usr"), []
    found = fetch(of, apt([served], calls))
    assert (found, found.read_text()) == (of.kept, served)
    assert calls[:2] == ["python3.13-minimal", "libpython3.13=3.13.5-2"]
    assert "update" not in calls
    # From then on it is there.
    assert find_libpython(of) == found
    assert lack(of) == ""


def test_where_there_is_no_library_the_command_that_helps_is_named(made, monkeypatch):
    missing = "{} was built without libpython3.13.so.1.0, which tritonserver needs: "
    monkeypatch.setattr(interpreter.shutil, "which", lambda _: "/usr/bin/apt-get")
    with pytest.raises(SetUpError) as caught:
        fetch(made("bare", library=False, prefix="/usr"), apt([], []))
    assert str(caught.value) == missing.format("bare") + "run `apt-get install libpython3.13`."
    own = made("own", library=False)
    for of in (own, own._replace(prefix="/usr")):
        with pytest.raises(SetUpError) as caught:
            fetch(of, apt([], []))
        monkeypatch.setattr(interpreter.shutil, "which", lambda _: None)
    better = "use a Python that has it, such as uv's, or pyenv's with --enable-shared."
    assert str(caught.value) == missing.format("own") + better


def test_others_are_looked_for_on_the_path_and_where_uv_and_pyenv_keep_them(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for name, text in (("python3.12", ""), ("uv", 'test "$3" = 3.11 && echo /uv/python3.11')):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    own = tmp_path / "pyenv" / "versions" / "3.13.0" / "bin"
    own.mkdir(parents=True)
    (own / "python3").touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    found = [str(tmp_path / "bin" / "python3.12"), "/uv/python3.11", str(own / "python3")]
    assert list(interpreter.executables()) == found


@pytest.mark.parametrize(
    ("words", "needs"),
    [
        ("", True),
        ("--cells onnx-*", True),
        ("--onnx-http-url h:8000", False),
        ("--onnx-http-url=h:8000 --skip-trt", False),
        ("--endpoints pytorch-http", False),
        ("--endpoints=pytorch-http,onnx-http", True),
        ("--endpoints all", True),
    ],
)
def test_a_study_of_servers_elsewhere_needs_no_triton_here(words, needs):
    assert interpreter.needs_triton(["--", *words.split()]) is needs


def test_the_command_prints_the_interpreter_alone():
    command = [sys.executable, "-m", "server.interpreter", "--alone", "--embedded", "--", "--cells", "a b"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{sys.executable}\n", "")


@pytest.mark.skipif(
    not shutil.which("python3.8") and not Path("/usr/bin/python3.8").exists(), reason="no Python 3.8"
)
def test_an_old_python_can_be_asked():
    command, environ = ["python3.8", "-m", "server.interpreter", "--alone"], {"PYENV_VERSION": "3.8.18"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environ})
    assert (done.returncode, done.stdout) == (2, "")
    assert "inferswarm needs Python 3.11 to 3.13, and " in done.stderr
