"""Names and paths from outside come out of every command line as they were, or are refused in a sentence."""

import json
import random
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.hosts.host import in_checkout, ssh_command
from swarm.hosts.hosts_file import HostSpec, read_hosts
from swarm.hosts.prepare import look, make_environment, within
from swarm.links.profiles import read_profiles

pytestmark = pytest.mark.slow

BITS = (
    *("a", "B", "7", ".", "/", "-", "--", "-o", "~", "é", "日本", "🙂", "\u202e", "\u2028", "\x85", "\ufeff"),
    *(" ", "  ", "\t", "\n", "\r", "\x1b[2J", "\x7f", "'", '"', "''", "`id`", "$(touch made)", "${HOME}"),
    *("$x", "\\", "\\n", ";", "|", "&", "&&", ">made", "<", "*", "?", "[a]", "{a,b}", "!", "#", "%h", "="),
    *(":", "@"),
    *("- a", ": b", "---", "null", "yes", "1e3", "0x1", "!!python/object", "&a", "*a"),
)  # fmt: skip


def hostile(count: int, seed: int) -> list[str]:
    """Texts put together from what shells, ssh and TOML read as their own."""
    found = random.Random(seed)
    return ["", *BITS, *("".join(found.choices(BITS, k=found.randint(1, 6))) for _ in range(count))]


def words_of(line: str, folder: Path) -> list[str]:
    """The words that a real shell makes of a line whose command is `printf`."""
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


def refused_or_read(folder: Path, **fields: object) -> HostSpec | None:
    """The host of such a hosts.toml, or None where it is refused in one line."""
    file = folder / "hosts.toml"
    lines = [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    file.write_text("\n".join(["[[host]]", *lines]), encoding="utf-8")
    said = ""
    try:
        (found,) = read_hosts(file)
    except UsageError as error:
        said = str(error)
    assert said.isprintable()
    return None if said else found


def test_every_word_for_the_far_shell_comes_out_as_it_went_in(tmp_path: Path) -> None:
    words = hostile(400, 1)
    line = in_checkout(HostSpec("far", "ssh", path="."), ["printf", "%s\\0", *words])
    assert words_of(line, tmp_path) == words
    assert list(tmp_path.iterdir()) == []


def test_every_path_on_a_far_machine_is_refused_or_is_that_folder(tmp_path: Path) -> None:
    read = 0
    for path in hostile(150, 2):
        spec = refused_or_read(
            tmp_path, name="far", kind="ssh", address="far", path=path, python=f"{path}/python3"
        )
        if spec is None or len(spec.path.encode()) > 200 or spec.path.startswith("/"):
            continue
        read += 1
        home = tmp_path / f"home-{read}"
        (home / spec.path).mkdir(parents=True)
        (home / spec.path / "here").touch()
        # As `prepare` has it said, in a shell within the login shell.
        asked = f"exec sh -c {shlex.quote(within(spec, 'ls'))}"
        done = subprocess.run(["sh", "-c", asked], cwd=home, capture_output=True, text=True, check=True)
        assert "here" in done.stdout.splitlines()
        assert shlex.split(look(spec).line)[0] == spec.python
        assert shlex.quote(spec.python) in make_environment(spec).line
        assert not list(home.rglob("made"))
    assert read > 20


def test_every_address_is_refused_or_is_one_word_that_is_no_option(tmp_path: Path) -> None:
    for address in hostile(300, 3):
        for text in (address, f"user@{address}", f"{address}@host"):
            spec = refused_or_read(tmp_path, name="far", kind="ssh", address=text, identity=address)
            if spec is None:
                continue
            command = ssh_command(spec, "true")
            assert command[-3:] == ["--", text, "true"]
            assert re.fullmatch(r"""(?!-)[^\s'"`$\\;&<>|(){}]+""", text)
            assert command[command.index("-i") + 1].startswith("/")


@pytest.mark.parametrize("kind", ["netns", "process", "ssh"])
def test_every_name_of_a_host_is_refused_or_of_letters_digits_and_dashes(tmp_path: Path, kind: str) -> None:
    more = {"address": "far"} if kind == "ssh" else {}
    for name in (*hostile(200, 4), "\0", "a\0b", "near-1"):
        spec = refused_or_read(tmp_path, name=name, kind=kind, **more)
        assert (spec is not None) == bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", name))


def test_every_name_of_a_link_is_refused_or_can_stand_in_an_option(tmp_path: Path) -> None:
    file, known = tmp_path / "links.toml", set(read_profiles())
    for name in (*hostile(200, 5), "\0", "my-link"):
        file.write_text(f"[{json.dumps(name)}]\none_way_ms = 1\n", encoding="utf-8")
        try:
            (made,) = set(read_profiles(file)) - known or {name}
        except UsageError:
            continue
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", made), made
