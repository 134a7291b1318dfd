"""What is bound where, and what is said of it."""

from locust.argument_parser import get_parser

import argparse
from pathlib import Path

import pytest

from swarm.locust_patches.bind_hosts import bind_loopback, for_other_machines, only_here, open_listeners
from swarm.options.parse import add_options


def parsed(*typed: str, files: tuple[str, ...] = ()) -> argparse.Namespace:
    parser = get_parser(default_config_files=list(files))
    known = {action.dest for action in parser._actions}
    if "prometheus_host" not in known:
        add_options(parser)
    bind_loopback(parser)
    return parser.parse_args(list(typed))


def bound(options: argparse.Namespace) -> tuple[str, str]:
    return options.web_host, options.master_bind_host


def test_loopback_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert bound(parsed()) == ("127.0.0.1", "127.0.0.1")
    assert bound(parsed("--web-host", "*", "--master-bind-host", "10.0.0.1")) == ("*", "10.0.0.1")
    file = tmp_path / "locust.conf"
    file.write_text("web-host = 10.0.0.2\nmaster-bind-host = 10.0.0.3\n")
    assert bound(parsed(files=(str(file),))) == ("10.0.0.2", "10.0.0.3")
    monkeypatch.setenv("LOCUST_WEB_HOST", "10.0.0.4")
    monkeypatch.setenv("LOCUST_MASTER_BIND_HOST", "*")
    assert bound(parsed(files=(str(file),))) == ("10.0.0.4", "*")
    assert bound(parsed("--web-host=::1", files=(str(file),))) == ("::1", "*")


def test_the_help_says_so() -> None:
    parser = get_parser(default_config_files=[])
    bind_loopback(parser)
    helps = {action.dest: str(action.help) for action in parser._actions}
    assert "Defaults to 127.0.0.1" in helps["web_host"]
    assert "Defaults to 127.0.0.1" in helps["master_bind_host"]
    assert helps["web_port"] == "Port on which to run web host"


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "no-such-host.invalid")),
        *((host, False) for host in ("", "*", "0.0.0.0", "::", "10.0.0.7", "169.254.1.1")),
    ],
)
def test_who_reaches_an_address(host: str, alone: bool) -> None:
    assert only_here(host) is alone


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        *(("", []), ("--web-host 10.0.0.7 --web-login", []), ("--headless --master-bind-host *", [])),
        *(("--headless --web-host *", []), ("--headless --master", [])),
        ("--headless --prometheus-host 0.0.0.0", []),
        ("--web-host *", ["--web-host '*': anyone who reaches port 8089"]),
        ("--headless --master --master-bind-host 10.0.0.7",
         ["--master-bind-host 10.0.0.7: anyone who reaches port 5557"]),
        ("--headless --prometheus-host 0.0.0.0 --prometheus-port 9646",
         ["--prometheus-host 0.0.0.0: anyone who reaches port 9646"]),
        ("--web-host= --master --master-bind-host * --web-port 1",
         ["--web-host '': anyone who reaches port 1", "--master-bind-host '*': anyone who reaches"]),
    ],
)  # fmt: skip
def test_what_is_open_without_a_login_is_said_loudly(typed: str, told: list[str]) -> None:
    sentences = list(open_listeners(parsed(*typed.split())))
    assert len(sentences) == len(told)
    for sentence, begins in zip(sentences, told, strict=True):
        assert sentence.startswith(begins)


def test_a_master_of_this_machine_says_how_others_come_in() -> None:
    assert "--master-bind-host ADDRESS lets other machines in" in for_other_machines(parsed("--master"))
    assert for_other_machines(parsed()) == ""
    assert for_other_machines(parsed("--master", "--master-bind-host", "*")) == ""
    forked = argparse.Namespace(**{**vars(parsed("--master")), "processes": 2})
    assert for_other_machines(forked) == ""
