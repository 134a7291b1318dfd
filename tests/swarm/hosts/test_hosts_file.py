"""hosts.toml: what may stand in it, and what is said of what may not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.hosts.hosts_file import HostSpec, read_hosts

WHOLE = """
[[host]]
name = "near"
kind = "netns"
workers = 2
[[host]]
name = "frankfurt"
kind = "ssh"
address = "bench@10.0.0.7"
port = 2222
identity = "/keys/bench"
path = "~/suite/inferswarm"
python = "python3.11"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "hosts.toml"
    file.write_text(text)
    return file


def host(**fields: object) -> str:
    return "\n".join(["[[host]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items()), ""])


def test_a_whole_file(tmp_path: Path) -> None:
    far = HostSpec("frankfurt", "ssh", address="bench@10.0.0.7", port=2222, identity="/keys/bench")
    far = replace(far, path="suite/inferswarm", python="python3.11")
    assert read_hosts(written(tmp_path, WHOLE)) == [HostSpec("near", "netns", workers=2), far]


def test_what_is_left_out(tmp_path: Path) -> None:
    (found,) = read_hosts(written(tmp_path, host(name="far", kind="ssh", address="far")))
    assert (found.workers, found.port, found.identity, found.config) == (None, None, "", "")
    assert (found.path, found.python) == ("inferswarm", "python3")


def test_paths_here_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    entry = host(name="far", kind="ssh", address="far", identity="~/.ssh/bench", path="~")
    (found,) = read_hosts(written(tmp_path, entry))
    assert (found.identity, found.path) == ("/home/me/.ssh/bench", ".")


def ssh(**fields: object) -> str:
    return host(**{"name": "far", "kind": "ssh", "address": "far", **fields})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'it defines no hosts: add a [[host]] with name = "near" and kind = "process"'),
        ("workers = 2", "workers is unknown: every host is a [[host]] table with its own fields"),
        ('host = ["near"]', "host is a single table: write [[host]], once for each host"),
        (host(name="near"), "host near: kind=missing: choose one of process, netns, ssh"),
        (host(name="near", kind="vm"), 'host near: kind="vm": choose one of process, netns, ssh'),
        (host(kind="netns", name=3), "host 1: name=3: give it a name of letters, digits and -"),
        (host(kind="process"), "host 1: name is missing: give it a name of letters, digits and -"),
        (host(kind="netns", name="-a"), 'host 1: name="-a": give it a name of letters, digits and -'),
        (
            host(kind="process", name="near", address="far"),
            "host near: address is unknown: a host of kind proces",
        ),
        (
            host(kind="ssh", name="far"),
            "host far: address is missing: give it HOST or USER@HOST, as ssh takes it",
        ),
        (ssh(workers=0), "host far: workers=0: give it a whole number from 1, or leave it out"),
        (ssh(workers=True), "host far: workers=true: give it a whole number from 1, or leave it out"),
        (ssh(port=65536), "host far: port=65536: give it a whole number from 1 to 65535, or leave it out"),
        (ssh(identity=""), 'host far: identity="": give it a text in quotes'),
        (
            ssh(config="ssh_config"),
            "host far: config cannot be set in a hosts file, as ssh runs commands in it: ",
        ),
        (
            ssh(python="poweroff"),
            'host far: python="poweroff": give it a command such as python3.11, or an abs',
        ),
        (ssh(path="~you/x"), 'host far: path="~you/x": give it a folder relative to the user'),
        (ssh() + ssh(), "2 hosts have the name far: give each host its own name"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        read_hosts(file)
    assert str(caught.value).startswith(f"{file}: {said}")


@pytest.mark.parametrize(
    "address", ["-oProxyCommand=touch x", "me@-oProxyCommand=x", "far away", "me@", "@far", "a@b@c", "$(x)"]
)
def test_an_address_is_never_an_option_nor_a_command(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="address="):
        read_hosts(written(tmp_path, ssh(address=address)))


@pytest.mark.parametrize("address", ["bench@fe80::1%eth0", "first.last@load-1.example.org", "my_alias"])
def test_addresses_as_ssh_takes_them(tmp_path: Path, address: str) -> None:
    assert read_hosts(written(tmp_path, ssh(address=address)))[0].address == address


def test_a_file_that_is_not_there_and_one_that_is_no_toml(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(
        UsageError, match=r"none.toml: cannot be read \(No such file or directory\): name the"
    ):
        read_hosts(missing)
    with pytest.raises(UsageError, match=r"hosts.toml: is not TOML: .*line 2"):
        read_hosts(written(tmp_path, "[[host]]\nname = near\n"))
