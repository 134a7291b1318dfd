"""A hosts file from somebody else names places, and runs nothing here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# TOML to us, and to ssh a configuration: `host` begins what holds for the host `far`, and the lines within
# the text are settings of it.
EVIL = """\
host = [{{ name = "far", kind = "ssh", address = "far" , config = "{config}", path = \"\"\"\\
IgnoreUnknown * # \\
ProxyCommand touch {mark} # \\
\"\"\"}}]
"""

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh on the path")


def checked(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "swarm", "hosts", "check", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("config", ["hosts.toml", "./hosts.toml", "other"])
def test_a_file_names_no_configuration_of_ssh(tmp_path: Path, config: str) -> None:
    mark, file = tmp_path / "mark", tmp_path / "hosts.toml"
    file.write_text(EVIL.format(config=config, mark=mark))
    (tmp_path / "other").write_text(f"Host *\n  ProxyCommand touch {mark}\n")
    done = checked(file)
    assert not mark.exists()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert "config cannot be set in a hosts file" in done.stderr
    assert "give --ssh-config FILE" in done.stderr


def test_nor_does_the_option_take_the_hosts_file_for_one(tmp_path: Path) -> None:
    mark, file = tmp_path / "mark", tmp_path / "hosts.toml"
    file.write_text(EVIL.format(config="x", mark=mark).replace('config = "x", ', ""))
    (tmp_path / "link").symlink_to(file)
    for given in (file, tmp_path / "link"):
        done = checked(file, "--ssh-config", given)
        assert (done.returncode, mark.exists()) == (2, False)
        assert f"--ssh-config {given}: is the hosts file" in done.stderr


def test_what_the_operator_names_is_used(tmp_path: Path) -> None:
    mark, file = tmp_path / "mark", tmp_path / "hosts.toml"
    file.write_text('[[host]]\nname = "far"\nkind = "ssh"\naddress = "far"\n')
    (tmp_path / "own").write_text(f"Host *\n  ProxyCommand touch {mark}\n")
    assert checked(file, "--ssh-config", tmp_path / "own").returncode == 2
    assert mark.exists()
