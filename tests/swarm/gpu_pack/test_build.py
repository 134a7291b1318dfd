"""What goes into a pack, and into which of its parts."""

import tarfile
from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.gpu_pack import build
from swarm.gpu_pack.build import binned, main, told, without_cuda, write_part
from swarm.gpu_pack.run import MANIFEST, SOURCES
from swarm.hosts.facts import COMMIT_FILE
from swarm.hosts.prepare import CheckoutArchive

LOCKED = """\
cuda-bindings==13.5.0 \\
    --hash=sha256:aa
numpy==2.4.6 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
nvidia-cublas==13.1.1.3 \\
    --hash=sha256:dd
nvidia-ml-py==13.615.71 \\
    --hash=sha256:ee
nvidia-nccl-cu13==2.29.7
nvidia-pytriton==0.7.0
"""


def files_of(folder: Path, *sizes: int) -> list[Path]:
    made = [folder / f"{name}.whl" for name in "abcdefgh"[: len(sizes)]]
    for file, size in zip(made, sizes, strict=True):
        file.write_bytes(b"x" * size)
    return made


def test_no_part_is_larger_than_asked_and_no_file_is_lost(tmp_path: Path) -> None:
    files = files_of(tmp_path, 40_000, 10_000, 60_000, 25_000, 1, 30_000)
    parts = binned(files, 80_000)
    assert ["".join(file.stem for file in part.files) for part in parts] == ["ce", "ad", "fb"]
    for part in parts:
        described = write_part(part, tmp_path)
        assert described["bytes"] == (tmp_path / part.name).stat().st_size <= 80_000
        with tarfile.open(tmp_path / part.name) as packed:
            assert packed.getnames() == list(described["files"]) == [file.name for file in part.files]


def test_a_file_that_fits_in_no_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--part-mb: a\.whl alone has 0\.1 MB; give a larger size"):
        binned(files_of(tmp_path, 100_000), 80_000)


def test_what_only_cuda_needs_is_the_hosts_own() -> None:
    words = "numpy==2.4.6 --hash=sha256:bb --hash=sha256:cc nvidia-ml-py==13.615.71 --hash=sha256:ee"
    assert without_cuda(LOCKED).replace("\\", "").split() == [*words.split(), "nvidia-pytriton==0.7.0"]


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages in place of those that a pack holds, and a commit of one file."""

    def gather(folder: Path) -> CheckoutArchive:
        (tmp_path / "README.md").write_text("inferswarm\n")
        with tarfile.open(folder / "checkout.tar", "w") as packed:
            packed.add(tmp_path / "README.md", "README.md")
        return CheckoutArchive("abcdef123456", folder / "checkout.tar", changed=True)

    monkeypatch.setattr(build, "gather", gather)
    monkeypatch.setattr(build, "closure", lambda python: f"for {python}")
    monkeypatch.setattr(build, "fetch", lambda wanted, python, folder: files_of(folder, 50_000, 40_000))


@pytest.mark.usefixtures("fetched")
def test_a_pack_has_parts_a_manifest_and_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gpu-pack"
    assert main(["--out", str(out), "--part-mb", "0.07"]) == 0
    assert sorted(file.name for file in out.iterdir()) == ["manifest.json", "part-1.tar", "part-2.tar", "run"]
    assert (out / "run").stat().st_mode & 0o111
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "uncommitted changes are not included: the pack holds abcdef123456"
    assert said[2:] == told(out).splitlines()
    assert said[2].endswith("gpu-pack: commit abcdef123456, for Python 3.12, 0 MB in 2 parts")
    with tarfile.open(out / "part-1.tar") as packed:
        packed.extract(SOURCES, tmp_path, filter="data")
    with tarfile.open(tmp_path / SOURCES) as packed:
        packed.extractall(tmp_path / "sources", filter="data")
    assert (tmp_path / "sources" / COMMIT_FILE).read_text() == "abcdef123456\n"
    assert (tmp_path / "sources/README.md").read_text() == "inferswarm\n"


@pytest.mark.usefixtures("fetched")
def test_a_pack_that_fails_leaves_the_last_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gpu-pack"
    out.mkdir()
    (out / "part-1.tar").write_text("the last one")
    (out / MANIFEST).write_text("{}")
    assert main(["--out", str(out), "--part-mb", "0.05"]) == 2
    assert capsys.readouterr().err == "--part-mb: a.whl alone has 0.1 MB; give a larger size, up to 60\n"
    assert (out / "part-1.tar").read_text() == "the last one"
    assert [file.name for file in tmp_path.iterdir() if file.is_dir()] == ["gpu-pack"]


@pytest.mark.usefixtures("fetched")
def test_a_folder_that_is_no_pack_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter").write_text("dear")
    with pytest.raises(SystemExit) as caught:
        main(["--out", str(tmp_path / "mine")])
    assert caught.value.code == 2
    assert f"--out {tmp_path / 'mine'}: exists and is not a pack; name another" in capsys.readouterr().err
    assert (tmp_path / "mine/letter").read_text() == "dear"


def test_parts_are_of_at_most_60_mb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--part-mb", "61"])
    assert caught.value.code == 2
    assert "--part-mb takes megabytes up to 60" in capsys.readouterr().err


def test_a_package_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^the packages cannot be downloaded: pip ended with 1: .*no-such"):
        build.fetch("no-such-package-of-ours==1.0\n", "3.12", tmp_path)
