"""A real sshd on loopback, for this user alone, with keys of its own: what an ssh host is tested with."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.processes import eventually, free_port, is_listening

PROGRAM = "/usr/sbin/sshd"
PRIVILEGE_FOLDER = Path("/run/sshd")
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
"""
CLIENT = """\
Host *
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
"""


def missing() -> str:
    """Why no sshd can be had here, or nothing."""
    if not Path(PROGRAM).exists():
        return f"there is no {PROGRAM}: install the package openssh-server"
    if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        return "there is no ssh: install the package openssh-client"
    if os.geteuid() == 0:
        PRIVILEGE_FOLDER.mkdir(mode=0o755, exist_ok=True)
    return ""


needs_sshd = pytest.mark.skipif(bool(missing()), reason=missing())


class Sshd:
    """While it is entered, `ssh -F config ANYTHING` logs in here; `port` is where it listens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "sshd"
        self.port = 0
        self.config = self._folder / "ssh_config"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir()
        for name in ("host_key", "client_key"):
            key = self._folder / name
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.port = free_port()
        self._write()
        self._process = subprocess.Popen(
            [PROGRAM, "-D", "-f", self._folder / "sshd_config", "-E", self._folder / "log"],
            stdin=subprocess.DEVNULL,
        )
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _write(self) -> None:
        user = pwd.getpwuid(os.getuid()).pw_name
        told = {"port": self.port, "folder": self._folder, "user": user}
        (self._folder / "sshd_config").write_text(SERVER.format(**told))
        self.config.write_text(CLIENT.format(**told))
        public = " ".join((self._folder / "host_key.pub").read_text().split()[:2])
        (self._folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {public}\n")

    def _wait(self) -> None:
        assert self._process is not None
        process = self._process
        listens = eventually(lambda: process.poll() is not None or is_listening(self.port))
        assert listens, "sshd does not listen"
        assert process.poll() is None, self.log

    @property
    def log(self) -> str:
        """What sshd has said."""
        file = self._folder / "log"
        return file.read_text() if file.exists() else ""

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def host_entry(self, name: str, path: Path | str, **fields: int | str) -> str:
        """The host's [[host]] in a hosts.toml; `path` is the checkout there."""
        told = {"name": name, "kind": "ssh", "address": "127.0.0.1", "path": str(path)}
        lines = [f'{field} = "{value}"' if isinstance(value, str) else f"{field} = {value}"
                 for field, value in {**told, **fields}.items()]  # fmt: skip
        return "\n".join(["[[host]]", *lines, ""])


def checkout_at(folder: Path) -> Path:
    """A folder that is to a host what a prepared checkout is: this checkout's files and environment."""
    root = Path(__file__).parents[3]
    folder.mkdir()
    for name in ("swarm", "users", "reports", "locustfiles", ".venv"):
        (folder / name).symlink_to(root / name)
    return folder
