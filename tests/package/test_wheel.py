"""The wheel, in an environment of its own and from a folder without a checkout."""

import csv
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Collection, Iterator, Sequence
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.stand_ins import stand_in
from tests.supply.pins import ROOT, asked

pytestmark = [pytest.mark.system, pytest.mark.slow]

UV = str(Path(sys.executable).with_name("uv"))
ROOMS = ("users", "swarm", "reports", "server", "triton_repo", "locustfiles")
LEFT_OUT = ("swarm/gpu_pack/", "server/Dockerfile", "server/compose", "server/k8s/")
WHOLE = (0, 3)
"""Exit codes of a study that came to its end: 3 where this machine had too little time for it."""
TAKEN = 'raise ImportError("this package is another\'s")\n'
"""A package that bears one of the suite's names."""
MINE = """
from swarm import Size, StudyShape, events
from swarm.plan.matrix import every_batch_and_level
from users import EmbeddingUser


class Mine(StudyShape):
    name, title = "mine", "A study of my own"
    sizes = {"quick": Size(batches=(1,), levels=(2,), iterations=5, seconds=1, warm_up=1, repeats=1)}

    def cells(self, endpoints, size):
        return every_batch_and_level(endpoints, size)


@events.window.add_listener
def on_window(**_):
    with open("heard.txt", "a") as file:
        file.write("a window\\n")
"""
LOAD = (
    "--batches", "1", "--levels", "2", "--iterations", "5", "--seconds", "1", "--warm-up", "1",
    "--repeats", "1",
)  # fmt: skip


class Installed:
    """An environment that the wheel is in, and a folder to work in, where packages of its names lie, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        for name in ("users", "reports", "inferswarm"):
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "__init__.py").write_text(TAKEN)
        self.python = folder / "venv/bin/python"
        own = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME", "VIRTUAL_ENV", "INFERSWARM_CACHE")
        self.environment = {name: value for name, value in os.environ.items() if name not in own}
        self.environment["HOME"] = str(folder)

    def run(self, *words: str, codes: Collection[int] = (0,)) -> str:
        """What a command of the suite prints, which ends with one of these exit codes."""
        command = [str(self.python.with_name("inferswarm")), *words]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout + done.stderr

    def study(self, name: str) -> tuple[Path, dict[str, object], list[dict[str, str]]]:
        """The only study of this name: its folder, its ledger's header, its cells; then it is moved away."""
        (found,) = (self.folder / "results").glob(f"{name}-*")
        folder = found.rename(self.folder / name)
        with (folder / "ledger.jsonl").open() as ledger, (folder / "cells.csv").open() as cells:
            return folder, json.loads(ledger.readline()), list(csv.DictReader(cells))

    def site_packages(self) -> set[str]:
        """All files there."""
        (folder,) = self.python.parents[1].glob("lib/python*/site-packages")
        return {
            str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts
        }


def uv(*words: str) -> None:
    subprocess.run([UV, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Beside what it asks for and a package `users` of others; removed again, with nothing left."""
    made = Installed(tmp_path_factory.mktemp("installed"))
    python = str(made.python)
    uv("venv", "--python", sys.executable, str(made.python.parents[1]))
    uv("pip", "install", "--system-certs", "--python", python, "-r", str(ROOT / "requirements-client.txt"))
    (site,) = made.python.parents[1].glob("lib/python*/site-packages")
    (site / "users.py").write_text(TAKEN)
    before = made.site_packages()
    # What requirements-client.txt leads to is all that it asks for.
    uv("pip", "install", "--offline", "--python", python, str(wheel))
    new = {name.partition("/")[0] for name in made.site_packages() - before}
    assert {name.partition("-")[0] for name in new} == {"inferswarm"}
    yield made
    uv("pip", "uninstall", "--python", python, "inferswarm")
    assert made.site_packages() == before
    assert not list(made.python.parent.glob("inferswarm*"))


def tracked() -> set[str]:
    """The files of the rooms that git knows, or would."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *ROOMS]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_has_the_rooms_and_takes_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
        about = message_from_bytes(files.read(next(name for name in names if name.endswith("/METADATA"))))
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"inferswarm"}
    suite = {name.removeprefix("inferswarm/suite/") for name in names if name.startswith("inferswarm/suite/")}
    own = {name for name in tracked() if not name.startswith(LEFT_OUT)}
    assert suite == own | {"requirements-client.lock", "requirements-triton.txt"}
    assert "reports/render/assets/echarts.LICENSE" in suite
    needs = about.get_all("Requires-Dist") or []
    assert len([one for one in needs if "extra ==" not in one]) == len(
        list(asked(ROOT / "requirements-client.txt"))
    )
    extra = {one.partition("==")[0].partition("[")[0] for one in needs if "extra == 'server'" in one}
    assert {"torch", "fastapi", "onnxruntime", "openvino"} < extra
    assert "nvidia-pytriton" not in extra, "it asks for numpy 1"


def test_a_study_from_an_empty_folder(installed: Installed) -> None:
    with stand_in("fake_service.py", "--delay-ms", "20") as address:
        typed = ("run", "--workers", "2", "--pytorch-url", address, "--endpoints", "pytorch-http", *LOAD)
        said = installed.run(*typed, codes=WHOLE)
    folder, head, (cell,) = installed.study("study")
    assert "report.html" in said
    assert (cell["workers"], cell["failures"]) == ("2", "0")
    assert head["options"]["command"] == " ".join(("inferswarm", *typed))  # type: ignore[index]
    assert head["fingerprint"]["version"] == "0.1.0"  # type: ignore[index]
    assert "pytorch-http" in installed.run("report", str(folder))


@pytest.mark.parametrize("command", [["run"], ["locust", "--headless"]], ids=["run", "locust"])
def test_a_locustfile_of_ones_own(installed: Installed, command: Sequence[str]) -> None:
    (installed.folder / "mine.py").write_text(MINE)
    (installed.folder / "heard.txt").unlink(missing_ok=True)
    with stand_in("fake_service.py", "--delay-ms", "20") as address:
        typed = [command[0], "-f", "mine.py", *command[1:], "--pytorch-url", address]
        installed.run(*typed, "--endpoints", "pytorch-http", codes=WHOLE)
    folder, head, (cell,) = installed.study("mine")
    assert cell["failures"] == "0"
    assert head["options"]["command"].startswith(" ".join(("inferswarm", *typed)))  # type: ignore[index]
    assert (installed.folder / "heard.txt").read_text().count("a window\n") >= 1
    folder.rename(folder.with_name(f"mine-{command[0]}"))


def test_every_command_says_how_it_is_called(installed: Installed) -> None:
    shown = installed.run("--help")
    commands = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]
    assert {"run", "locust", "report", "compare", "gate", "history", "doctor"} <= set(commands)
    for name in commands:
        assert f"usage: inferswarm {name} " in installed.run(name, "--help").replace("Usage", "usage")
    assert "--endpoint NAME=TARGET" in installed.run("locust", "-f", "step7", "--help")


def test_servers_that_are_not_installed(installed: Installed) -> None:
    first, second = "pip install 'inferswarm[server]'", "pip install --no-deps nvidia-pytriton=="
    said = installed.run("up", codes=(2,))
    assert said.count("\n") == 1
    assert said.index(first) < said.index(second)
    assert first in installed.run("doctor", codes=(2,))
    assert first in installed.run("export", codes=(2,))
