"""`inferswarm hosts`: what it prints, and its exit codes."""

import functools
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm import __main__ as swarm
from swarm.hosts import command
from swarm.hosts.facts import commit as git_commit
from swarm.hosts.host import ROOT
from swarm.hosts.hosts_file import HostSpec
from swarm.hosts.prepare import CheckoutArchive, Step, gather, send_checkout, within
from tests.swarm.hosts.repository import repository
from tests.swarm.hosts.sshd import Sshd, checkout_at, needs_sshd

pytestmark = pytest.mark.system

HEAD = "host kind reachable python locust commit cores load file limit clock offset"


def main(argv: list[str]) -> int:
    return swarm.main(["hosts", *argv])


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path) as made:
        yield made


@pytest.mark.usefixtures("elsewhere")
def test_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == HEAD.split()
    assert row.split()[:6] == ["h1", "process", "yes", platform.python_version(), "2.47.0", git_commit(ROOT)]
    assert row.rstrip().endswith(" ms")


@pytest.mark.usefixtures("elsewhere")
def test_hosts_toml_is_what_is_meant_by_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("hosts.toml").write_text('[[host]]\nname = "n"\nkind = "netns"\nworkers = 5000\n')
    assert main(["check"]) == 0
    _, near, *wrong = capsys.readouterr().out.splitlines()
    assert near.startswith("n     netns  created when the study runs  3.")
    assert len(wrong) == 1
    assert wrong[0].startswith("host n: 5000 workers share ")
    assert wrong[0].endswith("(a warning)")


def test_a_number_of_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "2"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["host", "h1", "h2"]
    assert main(["check", "0"]) == 2
    assert capsys.readouterr().err == "inferswarm: 0 hosts: give 1 to 250, or a hosts.toml\n"


@needs_sshd
def test_hosts_that_are_fit_or_not(sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "hosts.toml"
    fit = sshd.host_entry("fit", checkout_at(tmp_path / "there"))
    table.write_text(fit)
    assert main(["check", str(table), "--ssh-config", str(sshd.config)]) == 0
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[:4] == ["fit", "ssh", "yes", platform.python_version()]
    table.write_text(fit + sshd.host_entry("bare", tmp_path / "nothing"))
    assert main(["check", str(table), "--ssh-config", str(sshd.config)]) == 2
    _, first, second, *wrong = capsys.readouterr().out.splitlines()
    assert (first.split()[0], second.split()) == ("fit", ["bare", "ssh", "no"])
    (why,) = wrong
    assert why.startswith("host bare has no working inferswarm (")


def test_a_file_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "hosts.toml"
    assert main(["prepare", str(table)]) == 2
    assert capsys.readouterr().err.startswith(f"inferswarm: {table}: cannot be read")
    table.write_text('[[host]]\nname = "a"\nkind = "vm"\n')
    assert main(["check", str(table)]) == 2
    assert "host a: kind=" in capsys.readouterr().err


def linked(spec: HostSpec, source: CheckoutArchive) -> list[Step]:
    """Preparing, but that this environment is linked to instead of another one made."""
    venv = Path(sys.prefix).resolve()
    return [send_checkout(spec, source), Step("making .venv", within(spec, f"ln -sfn {venv} .venv"))]


@needs_sshd
def test_a_host_is_prepared_then_checked(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    names = ("swarm/hosts/facts.py", "swarm/launcher/supervisor.py")
    commit = repository(here, {name: (ROOT / name).read_text() for name in names})
    (here / "new").touch()
    monkeypatch.setattr(command, "gather", functools.partial(gather, checkout=here))
    monkeypatch.setattr(command, "steps", linked)
    table = tmp_path / "hosts.toml"
    near = '[[host]]\nname = "near"\nkind = "process"\n'
    table.write_text(near + sshd.host_entry("far", tmp_path / "there"))
    # Of another repository than ours is what it was sent, and that is found.
    assert main(["prepare", str(table), "--ssh-config", str(sshd.config)]) == 2
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == [
        f"uncommitted changes are not sent: hosts get commit {commit}",
        "near: nothing to do, it is of kind process",
        f"far: sending the checkout at {commit} (0.0 MB)",
        "far: making .venv",
    ]
    assert said[6].split()[:6] == ["far", "ssh", "yes", platform.python_version(), "2.47.0", commit]
    assert len(said) == 8
    assert said[7].startswith(f"host far: its checkout is at {commit}, ours is at {git_commit(ROOT)}: ")


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--help"], ["check", "prepare"]),
        (["check", "--help"], ["FILE|N", "[[host]]", "Exit code: 0 if all hosts can be used, 2 otherwise."]),
        (["prepare", "--help"], ["--wheels DIR", "python3.11", "Exit code"]),
    ],
)
def test_help(argv: list[str], shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert [word for word in shown if word not in said] == []


def test_the_example_in_the_help_is_a_hosts_file(tmp_path: Path) -> None:
    table = tmp_path / "hosts.toml"
    table.write_text(command.EXAMPLE.partition("\n\n")[2])
    assert [spec.name for spec in command.read_hosts(table)] == ["near", "frankfurt"]
