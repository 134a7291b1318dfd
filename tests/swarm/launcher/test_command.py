"""The command line of `inferswarm run`."""

from pathlib import Path
from typing import Any

import pytest

from swarm import __main__ as commands
from swarm.errors import UsageError
from swarm.hosts.hosts_file import HostSpec
from swarm.launcher import command

pytestmark = pytest.mark.system


def test_what_is_not_ours_goes_to_the_study() -> None:
    options, rest = command.parse(["-f", "x.py", "--workers", "4", "--seconds", "3", "--cells", "*/b1/*"])
    assert (options.locustfile, options.workers, options.hosts, options.link) == ("x.py", 4, "1", "none")
    assert rest == ["--seconds", "3", "--cells", "*/b1/*"]


def test_standard_output_may_be_for_the_study_s_lines_alone() -> None:
    given = ["--json-lines -", "--json-lines=-", "--json-lines out.jsonl --golden -", "--json-lines=x"]
    assert [command.has_lines_on_stdout(text.split()) for text in given] == [True, True, False, False]


def test_several_hosts_on_one_machine_and_hosts_with_links_have_addresses_of_their_own() -> None:
    assert command.hosts_of("1", linked=False) == [HostSpec("h1", "process")]
    assert command.hosts_of("1", linked=True) == [HostSpec("h1", "netns")]
    assert [spec.kind for spec in command.hosts_of("3", linked=False)] == ["netns"] * 3


def test_hosts_that_cannot_have_links(tmp_path: Path) -> None:
    (tmp_path / "hosts.toml").write_text('[[host]]\nname = "x"\nkind = "ssh"\naddress = "there"\n')
    with pytest.raises(
        UsageError, match="--link: host x is of kind ssh; only netns hosts have emulated links"
    ):
        command.hosts_of(str(tmp_path / "hosts.toml"), linked=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("-f nowhere.py", "-f nowhere.py: no such file; give a locustfile"),
        ("-f locustfiles/step7.py --workers -1", "--workers -1: workers must be at least 1"),
        (
            "-f locustfiles/step7.py --processes 2",
            "--processes: master and workers are started by this command",
        ),
        ("-f locustfiles/step7.py --hosts ²", "²: cannot be read"),
        ("-f locustfiles/step7.py --hosts 0", "0 hosts: give 1 to 250, or a hosts.toml"),
        ("-f locustfiles/step7.py --link moon", "there is no link named 'moon'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(arguments: str, sentence: str, capsys: Any, monkeypatch: Any):
    monkeypatch.setattr(command, "Signals", lambda: None)
    assert commands.main(["run", *arguments.split()]) == 2
    said = capsys.readouterr()
    (line,) = [line for line in said.err.splitlines() if line.startswith("inferswarm: ")]
    assert sentence in line
    assert said.out == ""


def test_links_and_the_path_as_it_is_may_be_compared() -> None:
    options, _ = command.parse(["-f", "x.py", "--link", "none,lan,wan-a100"])
    assert [profile.name for profile in command.profiles_of(options)] == ["lan", "wan-a100"]
    options, _ = command.parse(["-f", "x.py"])
    assert command.profiles_of(options) == []


def test_how_many_workers_are_enough() -> None:
    own = HostSpec("own", "process", workers=3)
    assert command.enough([own], 4) == 3
    assert command.enough([own, HostSpec("more", "process")], 8) == 8
    assert command.enough([own, HostSpec("more", "process")], 1) == 4


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert (commands.main(["--help"]), commands.main([]), commands.main(["fly"])) == (0, 2, 2)
    assert capsys.readouterr().err == "usage: python -m swarm run|probe|hosts|link|trace [--help]\n" * 3
