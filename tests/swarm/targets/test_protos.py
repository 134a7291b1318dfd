"""Protosets: read, compiled, and refused in one sentence."""

import base64
import importlib.util
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from swarm.errors import UsageError
from swarm.targets.protos import PACKAGE, PROTOSET, compiled, descriptors, protoset

PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Request { bytes image = 1; google.protobuf.Timestamp at = 2; }
message Answer { repeated float vector = 1; }
service Embedder { rpc Embed(Request) returns (Answer); }
"""


@pytest.fixture
def proto(tmp_path: Path) -> str:
    """A .proto that imports what comes with the compiler."""
    path = tmp_path / "embedder.proto"
    path.write_text(PROTO)
    return str(path)


def refused(path: str) -> str:
    """The sentence that is raised."""
    with pytest.raises(UsageError) as caught:
        descriptors(path)
    return str(caught.value)


def test_a_proto_is_compiled_with_what_it_imports(proto: str) -> None:
    files = FileDescriptorSet.FromString(compiled(proto)).file
    assert [file.name for file in files] == ["google/protobuf/timestamp.proto", "embedder.proto"]
    assert files[1].service[0].method[0].name == "Embed"
    assert base64.b64decode(descriptors(proto)) == compiled(proto)


def test_a_protoset_is_read_as_it_is(proto: str, tmp_path: Path) -> None:
    path = tmp_path / "embedder.pb"
    path.write_bytes(compiled(proto))
    assert protoset(str(path)) == compiled(proto)
    assert descriptors(str(path)) == descriptors(proto)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROTO.replace("bytes image", "picture image"), 'embedder.proto:4:19: "picture" is not defined'),
        (PROTO.replace("google/protobuf/timestamp", "other/part"), "other/part.proto: File not found"),
        ("{", 'embedder.proto:1:1: Expected top-level statement (e.g. "message")'),
    ],
)
def test_a_proto_that_does_not_compile(proto: str, text: str, said: str) -> None:
    Path(proto).write_text(text)
    assert refused(proto) == f"proto {proto}: does not compile ({said}); fix it, or give {PROTOSET}"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for name, kind in (("a.proto", "proto"), ("a.pb", "protoset")):
        said = refused(str(tmp_path / name))
        assert said.startswith(
            f"{kind} {tmp_path / name}: cannot be read (No such file or directory); name a"
        )


@pytest.mark.parametrize("data", [b"", b"syntax = proto3", b"\xff\xff"])
def test_what_is_no_protoset(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(data)
    assert refused(str(path)) == f"protoset {path}: is not a protoset; give {PROTOSET}, or the .proto itself"


def test_without_a_compiler(proto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert refused(proto) == f"proto {proto}: needs a compiler; pip install {PACKAGE}, or give {PROTOSET}"
