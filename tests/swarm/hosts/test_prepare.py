"""What makes an ssh host ready: what is sent, in which steps, and what is said where one fails."""

import hashlib
import io
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.hosts.check import HostError
from swarm.hosts.hosts_file import HostSpec, read_hosts
from swarm.hosts.prepare import (
    OWN_GIT,
    CheckoutArchive,
    Step,
    gather,
    install,
    look,
    make_environment,
    perform,
    prepare,
    send_checkout,
    steps,
)
from tests.swarm.hosts.repository import commit_all, repository
from tests.swarm.hosts.sshd import Sshd, needs_sshd

pytestmark = pytest.mark.system

FAR = HostSpec("far", "ssh", address="far", path="a b", python="python3.11")


def small() -> bytes:
    """A wheel of a package without anything in it, the same each time."""
    made, about = io.BytesIO(), "small-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as files:
        for name, text in {
            "METADATA": "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }.items():
            files.writestr(zipfile.ZipInfo(f"{about}/{name}"), text)
    return made.getvalue()


LOCKED = f"small==1.0 --hash=sha256:{hashlib.sha256(small()).hexdigest()}\n"
REQUIRED = {"requirements-client.lock": LOCKED, "swarm/note.txt": "first\n"}


def wheel(folder: Path, content: bytes = b"") -> Path:
    """A folder with that wheel, or with another content under its name."""
    folder.mkdir()
    (folder / "small-1.0-py3-none-any.whl").write_bytes(content or small())
    return folder


@pytest.fixture
def source(tmp_path: Path) -> CheckoutArchive:
    (tmp_path / "sent").mkdir()
    repository(tmp_path / "here", REQUIRED)
    return gather(tmp_path / "sent", checkout=tmp_path / "here")


def test_a_commit_is_sent_and_nothing_that_is_not_committed(tmp_path: Path) -> None:
    here, sent = tmp_path / "here", tmp_path / "sent"
    sent.mkdir()
    commit = repository(here, REQUIRED)
    clean = gather(sent, checkout=here)
    assert (clean.commit, clean.changed, clean.wheels) == (commit, False, None)
    (here / "swarm/note.txt").write_text("second\n")
    (here / "new.txt").write_text("new\n")
    changed = gather(sent, checkout=here)
    assert (changed.commit, changed.changed) == (commit, True)
    with tarfile.open(changed.files) as files:
        assert {name for name in files.getnames() if "." in name} == REQUIRED.keys()
        note = files.extractfile("swarm/note.txt")
        assert note is not None
        assert note.read() == b"first\n"


def test_wheels_are_packed(tmp_path: Path) -> None:
    repository(tmp_path / "here", REQUIRED)
    source = gather(tmp_path, wheel(tmp_path / "wheels"), checkout=tmp_path / "here")
    assert source.wheels is not None
    with tarfile.open(source.wheels) as packed:
        assert packed.getnames() == ["small-1.0-py3-none-any.whl"]


def test_an_installed_inferswarm_sends_its_own_files(tmp_path: Path) -> None:
    suite, sent = tmp_path / "suite", tmp_path / "sent"
    for name in ("users/a.py", "swarm/b.py", "swarm/__pycache__/b.pyc", "reports/c.css", "locustfiles/d.py"):
        (suite / name).parent.mkdir(parents=True, exist_ok=True)
        (suite / name).write_text(name)
    (suite / "server").mkdir()
    (suite / "requirements-client.lock").write_text(LOCKED)
    sent.mkdir()
    found = gather(sent, checkout=suite)
    assert (found.commit, found.changed) == (version("inferswarm"), False)
    with tarfile.open(found.files) as files:
        assert {entry.name for entry in files if entry.isfile()} == {
            "users/a.py", "swarm/b.py", "reports/c.css", "locustfiles/d.py", "requirements-client.lock",
        }  # fmt: skip


def test_what_cannot_be_sent_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=f"^{tmp_path}: has no requirements-client.lock: prepare hosts from a "
    ):
        gather(tmp_path, checkout=tmp_path)
    repository(tmp_path, REQUIRED)
    with pytest.raises(UsageError) as caught:
        gather(tmp_path, tmp_path / "swarm", checkout=tmp_path)
    assert str(caught.value).startswith(f"--wheels {tmp_path / 'swarm'}: has no wheels: fill it with")


def test_the_steps_in_their_order(source: CheckoutArchive) -> None:
    found = steps(FAR, source)
    sending = f"sending the checkout at {source.commit} (0.0 MB)"
    abouts = ["looking for python3.11", sending, "making .venv", "installing requirements-client.lock"]
    assert [step.about for step in found] == abouts
    assert [step.sent for step in found] == [None, source.files, None, None]
    assert found[3].line.startswith("mkdir -p './a b' && cd './a b' && { .venv/bin/python -m pip install ")
    assert found[3].line.endswith(" --require-hashes --no-deps -r requirements-client.lock; }")


def test_with_wheels_nothing_is_fetched(source: CheckoutArchive) -> None:
    found = steps(FAR, replace(source, wheels=source.files))
    assert [step.about for step in found][3] == "sending wheels (0.0 MB)"
    assert "--no-index --find-links .wheels -r requirements-client.lock" in found[4].line


def run(step: Step) -> subprocess.CompletedProcess[str]:
    """The step on this machine, without ssh."""
    sent = step.sent.open() if step.sent else subprocess.DEVNULL
    try:
        return subprocess.run(["sh", "-c", step.line], stdin=sent, capture_output=True, text=True)
    finally:
        if not isinstance(sent, int):
            sent.close()


def test_the_wrong_python_is_told_by_its_version(tmp_path: Path) -> None:
    old = tmp_path / "old python"
    script = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{script}" "$2"\n')
    old.chmod(0o755)
    done = run(look(replace(FAR, python=str(old))))
    assert (done.returncode, done.stderr) == (1, "it is Python 3.9\n")
    assert run(look(replace(FAR, python=sys.executable))).returncode == 0
    assert run(look(replace(FAR, python="/no python"))).returncode == 127


def test_a_checkout_that_was_sent_in_part_is_of_no_commit(tmp_path: Path, source: CheckoutArchive) -> None:
    there = replace(FAR, path=str(tmp_path / "it's there"))
    assert run(send_checkout(there, source)).returncode == 0
    commit = tmp_path / "it's there/.inferswarm-commit"
    assert commit.read_text() == f"{source.commit}\n"
    half = tmp_path / "half.tar"
    half.write_bytes(source.files.read_bytes()[:700])
    assert run(send_checkout(there, replace(source, files=half))).returncode != 0
    assert not commit.exists()


def test_an_environment_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    there = replace(FAR, path=str(tmp_path), python="/no/python")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    # No link to this Python: a distribution's has no pip by itself, and would not find the environment.
    (tmp_path / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    assert run(make_environment(there)).returncode == 0
    (tmp_path / ".venv/bin/python").unlink()
    assert run(make_environment(there)).returncode == 127


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostSpec]:
    folder = tmp_path_factory.mktemp("ssh")
    with Sshd(folder) as sshd:
        table = folder / "hosts.toml"
        table.write_text(sshd.host_entry("far", folder / "it's there", python=sys.executable))
        yield read_hosts(table, str(sshd.config))[0]


@needs_sshd
@pytest.mark.slow
def test_a_host_is_made_ready_and_made_ready_again(far: HostSpec, tmp_path: Path) -> None:
    here, said = tmp_path / "here", list[str]()
    repository(here, REQUIRED)
    source = gather(tmp_path, wheel(tmp_path / "wheels"), checkout=here)
    prepare(far, steps(far, source), said.append)
    assert said == [f"far: {step.about}" for step in steps(far, source)]
    there = Path(far.path)
    listed = [there / ".venv/bin/python", "-m", "pip", "list", "--format=freeze"]
    assert "small==1.0" in subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert not (there / ".wheels").exists()
    (here / "swarm/note.txt").write_text("second\n")
    commit_all(here)
    again = gather(tmp_path, wheels=tmp_path / "wheels", checkout=here)
    assert again.commit != source.commit
    prepare(far, steps(far, again), said.append)
    assert (there / ".inferswarm-commit").read_text() == f"{again.commit}\n"
    assert (there / "swarm/note.txt").read_text() == "second\n"


@needs_sshd
@pytest.mark.slow
def test_a_wheel_that_is_not_the_locked_one_is_not_installed(far: HostSpec, tmp_path: Path) -> None:
    there = replace(far, path=str(tmp_path / "there"))
    repository(tmp_path / "here", REQUIRED)
    other = wheel(tmp_path / "wheels", small() + b" ")
    source = gather(tmp_path, other, checkout=tmp_path / "here")
    with pytest.raises(HostError, match=r"^host far: installing requirements-client.lock failed"):
        prepare(there, steps(there, source), list[str]().append)
    listed = [Path(there.path) / ".venv/bin/python", "-m", "pip", "list", "--format=freeze"]
    assert "small" not in subprocess.run(listed, capture_output=True, text=True, check=True).stdout


@needs_sshd
def test_a_git_checkout_there_is_left_as_it_is(
    far: HostSpec, source: CheckoutArchive, tmp_path: Path
) -> None:
    repository(tmp_path / "theirs", {"swarm/note.txt": "theirs\n"})
    there, said = replace(far, path=str(tmp_path / "theirs")), list[str]()
    prepare(there, [send_checkout(there, source)], said.append)
    assert said == [f"far: sending the checkout at {source.commit} (0.0 MB)", f"far: {OWN_GIT}"]
    assert (tmp_path / "theirs/swarm/note.txt").read_text() == "theirs\n"


@needs_sshd
def test_a_step_that_fails_is_told_with_its_last_line_and_ends_it(far: HostSpec) -> None:
    tries = Step("tries", "echo first; echo 'no room left' >&2; exit 9", fix="make room")
    said = list[str]()
    with pytest.raises(HostError) as caught:
        prepare(far, [tries, Step("rests", "true")], said.append)
    assert str(caught.value) == "host far: tries failed (`no room left`): make room"
    assert said == ["far: tries"]


@needs_sshd
def test_a_host_that_cannot_be_reached(far: HostSpec) -> None:
    with pytest.raises(HostError, match=r"^host far cannot be reached: ssh says `.*Connection refused`"):
        perform(replace(far, port=1), install(far, from_wheels=False))
