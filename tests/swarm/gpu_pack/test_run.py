"""gpu-pack/run as a host's Python runs it: parts that come one by one, broken ones, and setting up once."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from swarm.gpu_pack.run import MANIFEST
from tests.swarm.gpu_pack.fake_pack import fake_pack


class Answer(NamedTuple):
    code: int
    out: list[str]
    err: str


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return fake_pack(tmp_path / "made")


def call(pack: Path, *more: str) -> Answer:
    home = pack.parents[1] / "home"
    command = [sys.executable, str(pack / "run"), f"--home={home}", f"--out={home / 'out'}", *more]
    done = subprocess.run(command, capture_output=True, text=True, cwd=pack.parent)
    return Answer(done.returncode, done.stdout.splitlines(), done.stderr)


def test_parts_come_one_by_one_and_then_it_is_set_up_once(pack: Path) -> None:
    (pack / "part-1.tar").rename(pack.parent / "later.tar")
    said = "part-1.tar has not arrived: put it beside gpu-pack/run, and call it again.\n"
    assert call(pack) == Answer(3, ["part-2.tar has been unpacked"], said)
    (pack / "part-2.tar").unlink()
    (pack.parent / "later.tar").rename(pack / "part-1.tar")
    performing = "performing --home --out --minutes --began"
    assert call(pack) == Answer(0, ["part-1.tar has been unpacked", "setting up...", performing], "")
    asked = (pack.parents[1] / "home/asked").read_text().split()
    assert asked[:5] == ["install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    assert [Path(wheel).name for wheel in asked[5:]] == ["numpy-2-py3-none-any.whl", "pip-1-py3-none-any.whl"]
    assert call(pack, "--small", "--steps=a") == Answer(0, [f"{performing} --steps --small"], "")


def test_the_hosts_packages_stand_behind_the_packs_own(pack: Path) -> None:
    assert call(pack).code == 0
    code = "import sys; print(*sys.path, sep='\\n')"
    python = pack.parents[1] / "home/venv/bin/python3"
    path = subprocess.check_output([python, "-c", code], text=True).splitlines()
    own = next(at for at, place in enumerate(path) if place.startswith(str(python.parents[1])))
    theirs = next(at for at, place in enumerate(path) if Path(place, "torch/__init__.py").exists())
    assert own < theirs


def test_all_that_have_not_arrived_are_named(pack: Path) -> None:
    for part in pack.glob("part-*.tar"):
        part.unlink()
    said = "part-1.tar and part-2.tar have not arrived: put them beside gpu-pack/run, and call it again.\n"
    assert call(pack) == Answer(3, [], said)


def test_a_part_that_was_changed_on_the_way_is_one_sentence_and_nothing_of_it_is_kept(pack: Path) -> None:
    data = bytearray((pack / "part-1.tar").read_bytes())
    data[600] ^= 1
    (pack / "part-1.tar").write_bytes(data)
    said = "part-1.tar is not what was packed (its SHA-256 differs): copy it again.\n"
    assert call(pack) == Answer(2, [], said)
    assert not (pack.parents[1] / "home/files").exists()


def test_a_part_that_lacks_a_file_is_one_sentence(pack: Path) -> None:
    manifest = json.loads((pack / MANIFEST).read_text())
    with tarfile.open(pack / "part-1.tar", "w"):
        pass
    from swarm.gpu_pack.run import digest

    name = next(iter(manifest["parts"][0]["files"]))
    manifest["parts"][0]["sha256"] = digest(pack / "part-1.tar")
    (pack / MANIFEST).write_text(json.dumps(manifest))
    assert call(pack) == Answer(2, [], f"part-1.tar has no {name} as it was packed: rebuild the pack.\n")


@pytest.mark.parametrize("text", [None, "{", '{"python": "3.12"}'])
def test_a_damaged_manifest_is_one_sentence(pack: Path, text: str | None) -> None:
    (pack / MANIFEST).unlink()
    if text is not None:
        (pack / MANIFEST).write_text(text)
    said = f"{pack / MANIFEST} is missing or damaged: copy it again.\n"
    assert call(pack) == Answer(2, [], said)


def test_another_python_is_refused(tmp_path: Path) -> None:
    answer = call(fake_pack(tmp_path / "made", "3.8"))
    assert (answer.code, answer.out) == (2, [])
    assert answer.err.startswith(f"the pack is for Python 3.8, and {sys.executable} is 3.")
    assert answer.err.endswith(".\n")


def test_a_python_without_pytorch_is_refused(pack: Path) -> None:
    command = [sys.executable, "-I", "-S", str(pack / "run"), f"--home={pack.parent / 'home'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert " has no PyTorch: run it with the Python that has it, `PYTHON gpu-pack/run`." in done.stderr


def test_a_home_that_cannot_be_is_one_sentence(pack: Path) -> None:
    (pack.parent / "file").touch()
    answer = call(pack, f"--home={pack.parent / 'file'}")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, [], 1)
    assert answer.err.startswith(f"--home {pack.parent / 'file'} cannot be used (")


def test_what_was_unpacked_and_is_gone_is_asked_for_again(pack: Path) -> None:
    assert call(pack).code == 0
    (pack.parents[1] / "home/files/numpy-2-py3-none-any.whl").unlink()
    parts = json.loads((pack / MANIFEST).read_text())["parts"]
    (part,) = (part["name"] for part in parts if "numpy-2-py3-none-any.whl" in part["files"])
    (pack / part).unlink()
    assert call(pack).err == f"{part} has not arrived: put it beside gpu-pack/run, and call it again.\n"


def test_nothing_of_the_hosts_path_comes_before_the_packs(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(pack.parent / "tree"))
    sources = pack.parents[1] / "home/sources/swarm/gpu_pack/perform.py"
    assert call(pack).code == 0
    sources.write_text("import os, sys; print(os.environ.get('PYTHONPATH'))")
    assert call(pack).out == ["None"]


def test_a_home_with_a_space_is_refused(pack: Path) -> None:
    answer = call(pack, "--home=/tmp/my home")
    assert answer.code == 2
    assert "--home /tmp/my home: tritonserver cannot use a path with spaces or quotes" in answer.err
