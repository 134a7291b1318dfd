"""Codecs by name, and of files of one's own: the same file on every host, with one codec in it."""

import hashlib
from pathlib import Path

import pytest

from users.codecs.registry import codec_named, digest_of
from users.errors import TargetError

OWN = """
from users.codecs.base import Codec, PreparedRequest

class Mine(Codec):
    name, wire, path = "mine", "http", "/mine"
    def prepare(self, images, indices, request_id=""):
        return PreparedRequest(b"", indices)
    def vectors(self, answer):
        raise NotImplementedError
"""


def written(folder: Path, text: str) -> tuple[str, str]:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path), hashlib.sha256(text.encode()).hexdigest()


def test_each_codec_of_ours_is_found_by_its_name() -> None:
    wires = {
        "embed": "http", "v2-binary": "http", "v2-json": "http", "v2-grpc": "grpc",
        "declared-http": "http", "declared-grpc": "grpc",
    }  # fmt: skip
    assert {name: codec_named(name).wire for name in wires} == wires
    assert all(codec_named(name).name == name for name in wires)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(TargetError, match=r"there is no codec 'v3'; there are .*v2-grpc.*your own file"):
        codec_named("v3")


def test_a_file_is_the_codec_in_it(tmp_path: Path) -> None:
    path, sha256 = written(tmp_path, OWN)
    assert digest_of(path) == sha256
    assert codec_named(path, sha256).name == "mine"


def test_a_file_that_is_not_the_masters_is_not_run(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "raise SystemExit('this was run')")
    with pytest.raises(TargetError, match="differs from the master's; put the same file there"):
        codec_named(path, "0" * 64)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "defines 0 codecs; give it exactly one subclass of users.Codec with a name"),
        (OWN + OWN.replace("Mine", "Other"), "defines 2 codecs"),
        ("import nothing_of_that_name", "cannot be imported (ModuleNotFoundError: No module named"),
        ("class", "cannot be imported (SyntaxError: "),
    ],
)
def test_a_file_that_is_no_codec_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(TargetError) as refused:
        codec_named(*written(tmp_path, text))
    assert sentence in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"cannot be read \(No such file"):
        codec_named(str(tmp_path / "none.py"), "")
