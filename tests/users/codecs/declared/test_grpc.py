"""A declared gRPC method: requests as its own protobuf reads them, and vectors out of its answers."""

import base64
import importlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError, Message
from PIL import Image

from swarm.targets.protos import descriptors
from users.codecs.declared.grpc import DeclaredGrpc, method_of
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.http2.call import GrpcAnswer
from users.inputs.images import ImageSet

PROTO = """
syntax = "proto3";
package vision.v1;
import "google/protobuf/struct.proto";
import "part.proto";

enum Kind { NONE = 0; IMAGE = 1; }
message Picture { bytes data = 1; string url = 2; repeated float values = 3; repeated int64 shape = 4; }
message Request {
  string model = 1;
  repeated Picture pictures = 2;
  repeated bytes files = 3;
  map<string, bytes> input = 4;
  map<int32, Picture> by_number = 5;
  map<string, string> words = 6;
  Kind kind = 7;
  google.protobuf.Struct options = 8;
  bytes raw = 9;
  bool normalise = 10;
  repeated string texts = 11;
  string a_text = 12;
  Part part = 13;
  repeated int32 whole = 14;
  int64 big = 15;
}
message Row { int32 index = 1; repeated float embedding = 2; repeated double wide = 3; string base64 = 4; }
message Answer {
  repeated Row data = 1;
  repeated float flat = 2;
  repeated bytes raws = 3;
  bytes prediction = 4;
  string text = 5;
  map<string, Row> outputs = 6;
  Row one = 7;
  google.protobuf.Struct loose = 8;
  Kind kind = 9;
  map<int32, bytes> numbered = 10;
}
service Embedder {
  rpc Embed(Request) returns (Answer);
  rpc Watch(Request) returns (stream Answer);
}
"""
PART = 'syntax = "proto2"; package vision.v1; message Part { required string name = 1; }'
METHOD, WATCH = "/vision.v1.Embedder/Embed", "/vision.v1.Embedder/Watch"
VECTORS = {"vectors": "data[].embedding"}
PICTURE = Input("", "FP32", (3, 4, 4), "picture", "NCHW")


@pytest.fixture(scope="module")
def protos(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The service's methods, in base64."""
    folder = tmp_path_factory.mktemp("protos")
    (folder / "part.proto").write_text(PART)
    (folder / "vision.proto").write_text(PROTO)
    return descriptors(str(folder / "vision.proto"))


@pytest.fixture(scope="module")
def images() -> ImageSet:
    """Three pictures of 4 x 4 pixels, and two texts."""
    files = []
    for colour in ("red", "green", "blue"):
        Image.new("RGB", (4, 4), colour).save(buffer := io.BytesIO(), "JPEG")
        files.append(buffer.getvalue())
    return ImageSet(tuple(files), "test", texts=("a dog", "ein Hündchen"))


def codec(protos: str, message: Any, answer: Any = VECTORS, path: str = METHOD, **body: Any) -> DeclaredGrpc:
    """Of an endpoint as a file describes it."""
    made = {"path": path, "contract": body.pop("contract", None) or Contract((PICTURE,))}
    settings = {"body": {"message": message, **body}, "answer": answer, "descriptors": protos}
    return DeclaredGrpc(Endpoint("mine", "rpc", "grpc", "jpeg", "127.0.0.1:1", settings=settings, **made))


def sent(protos: str, images: ImageSet, message: Any, indices: tuple[int, ...] = (0,), **more: Any) -> Any:
    """The request as the service reads it."""
    prepared = codec(protos, message, **more).prepare(images, indices)
    assert type(prepared.body) is bytes
    assert prepared.indices == indices
    return method_of(protos, METHOD).request.FromString(prepared.body)


def answered(protos: str, answer: Any, message: Any, dimension: int = 0) -> Any:
    """What is read out of a message of the service, which is given by its fields."""
    contract = Contract((PICTURE,), dimension=dimension)
    made: Message = method_of(protos, METHOD).answer(**message)
    read = codec(protos, {"raw": "$jpeg"}, answer, contract=contract).vectors
    found = read(GrpcAnswer(made.SerializeToString()))
    assert found.dtype == np.float32
    return found.tolist()


def refused(protos: str, message: Any, answer: Any = VECTORS, path: str = METHOD, **more: Any) -> str:
    """The sentence that is raised as the codec is made."""
    with pytest.raises(ValueError) as caught:
        codec(protos, message, answer, path, **more)
    return str(caught.value)


@pytest.mark.parametrize("path", [METHOD, METHOD[1:]])
def test_the_path_is_grpcs(protos: str, path: str) -> None:
    assert codec(protos, {"raw": "$jpeg"}, path=path).path == METHOD


# Requests


def test_a_file_in_each_place_for_bytes(protos: str, images: ImageSet) -> None:
    (jpeg, *_) = images.jpegs
    request = sent(protos, images, {
        "raw": "$jpeg",
        "files": ["$jpeg", "$jpeg_base64", "AAEC"],
        "input": {"data": "$jpeg", "other": "AAEC"},
        "by_number": {"7": {"data": "$jpeg", "url": "$data_url"}},
    }, contract=Contract(max_batch=1))  # fmt: skip
    assert request.raw == jpeg
    assert list(request.files) == [jpeg, jpeg, b"\0\1\2"]
    assert dict(request.input) == {"data": jpeg, "other": b"\0\1\2"}
    assert request.by_number[7].data == jpeg
    assert request.by_number[7].url == f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def test_what_is_no_picture_goes_as_protobufs_json(protos: str, images: ImageSet) -> None:
    plain = {"model": "clip", "kind": "IMAGE", "normalise": True, "part": {"name": "p"}, "whole": [1, 2]}
    nested = {"options": {"size": 4, "names": ["a", {"b": True}]}, "words": {"a": "$text"}}
    told = {"raw": "$jpeg", "aText": "a $$ and $text", "big": "9007199254740993", **plain, **nested}
    request = sent(protos, images, told, (1,))
    assert (request.model, request.kind, request.normalise, request.part.name) == ("clip", 1, True, "p")
    assert (request.a_text, dict(request.words)) == ("a $ and ein Hündchen", {"a": "ein Hündchen"})
    assert request.options["size"] == 4
    assert request.options["names"][1]["b"] is True
    assert (list(request.whole), request.big) == ([1, 2], 9007199254740993)


def test_a_batch_repeats_its_array(protos: str, images: ImageSet) -> None:
    request = sent(protos, images, {"pictures": [{"data": "$jpeg", "url": "$text"}]}, (2, 0))
    assert [one.data for one in request.pictures] == [images.jpegs[2], images.jpegs[0]]
    assert [one.url for one in request.pictures] == ["a dog", "a dog"]
    files = sent(protos, images, {"files": ["$jpeg"]}, (1, 2))
    assert list(files.files) == [images.jpegs[1], images.jpegs[2]]
    named = {"files": ["$jpeg"], "texts": ["query"]}
    assert list(sent(protos, images, named, (1, 0), repeat="files").texts) == ["query"]


def test_a_text_in_bytes_is_that_text(protos: str, images: ImageSet) -> None:
    request = sent(protos, images, {"files": ["$text"], "raw": "AAEC"}, (1, 2), repeat="files")
    assert list(request.files) == ["ein Hündchen".encode(), b"a dog"]
    assert request.raw == b"\0\1\2"


def test_pixels_as_numbers_and_as_bytes(protos: str, images: ImageSet) -> None:
    picture = {"data": "$pixels", "values": "$pixels", "shape": [1, 3, 4, 4]}
    (made,) = sent(protos, images, {"pictures": [picture]}).pictures
    pixels = images.tensor(PICTURE, Contract((PICTURE,)), (0,))[0]
    assert pixels.shape == (3, 4, 4)
    assert np.array_equal(np.array(made.values, np.float32), pixels.ravel())
    assert made.data == pixels.astype("<f4").tobytes()
    assert list(made.shape) == [1, 3, 4, 4]


def test_integers_take_pixels_that_are(protos: str, images: ImageSet) -> None:
    integers = Contract((Input("", "UINT8", (3, 4, 4), "picture", "NCHW"),))
    request = sent(protos, images, {"whole": "$pixels"}, contract=integers)
    assert len(request.whole) == 48
    assert max(request.whole) > 200
    with pytest.raises(
        ValueError, match=r"^body.message.whole: has an integer type, but \$pixels are float32"
    ):
        sent(protos, images, {"whole": "$pixels"})


def test_requests_are_equal_from_process_to_process(protos: str, images: ImageSet) -> None:
    message = {"input": dict.fromkeys("edcba", "$jpeg")}
    bodies = {codec(protos, message).prepare(images, (0,)).body for _ in range(3)}
    assert len(bodies) == 1


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (None, "body.message: is not a table; give the request's fields, such as { image = \"$jpeg\" }"),
        ({"model": "clip"}, "body.message: has no placeholder for a picture or a text; give "),
        ({"raw": "$jpeg", "url": "https://a.example/a.jpg"},
         "body.message.url: has a URL, which the server "),
        ({"pictures": [{"jpeg": "$jpeg"}]},
         "body.message.pictures: there is no 'jpeg' in Picture, which has data,"),
        ({"pictures": "$jpeg"},
         "body.message.pictures: is a list, each a Picture, which $jpeg is not; give "),
        ({"pictures": ["$jpeg"]}, "body.message.pictures: is not a table; give fields of Picture"),
        ({"part": "$text"}, "body.message.part: is not a table; give fields of Part"),
        ({"input": ["$text"]}, "body.message.input: is a table, which ['text'] is not; give one"),
        ({"by_number": {"x": {"data": "$jpeg"}}},
         "body.message.by_number: 'x' is not a key of by_number; give a number"),
        ({"files": "$jpeg"}, "body.message.files: is a list, each bytes, which $jpeg is not; give "),
        ({"a_text": "$jpeg"},
         "body.message.a_text: is a text, which $jpeg is not; give $jpeg_base64 or $data_url"),
        ({"a_text": "$pixels"}, "body.message.a_text: is a text, which $pixels are not; "),
        ({"raw": "$text", "input": {"a": "?"}},
         "body.message.input.a: has type bytes, but '?' is not base64; give $jpeg"),
        ({"raw": "$jpeg", "kind": "VIDEO"},
         "body.message.kind: is an enum or a bool, which 'VIDEO' is not; "),
        ({"raw": "$jpeg", "whole": [1.5]},
         "body.message.whole: is a list, each a number, which [1.5] is not; "),
        ({"raw": "$jpeg", "part": {}}, "body.message: lacks required fields; give part.name"),
    ],
)  # fmt: skip
def test_a_message_that_will_not_do(protos: str, message: Any, said: str) -> None:
    assert refused(protos, message).startswith(said)


def test_a_batch_that_has_no_place(protos: str) -> None:
    said = "body.message: nothing in it repeats for a batch of 4; put the placeholder into an array, or set"
    assert refused(protos, {"raw": "$jpeg"}, contract=Contract(max_batch=4)) == f"{said} max_batch = 1"


# Methods


def test_methods_that_are_not_there(protos: str) -> None:
    said = {path: refused(protos, {}, path=path) for path in (f"{METHOD}d", "/other.S/Embed", WATCH)}
    assert said[f"{METHOD}d"] == f"method: there is no {METHOD}d in its protoset; give {METHOD}"
    assert said["/other.S/Embed"].startswith("method: there is no /other.S/Embed")
    assert said[WATCH] == f"method: {WATCH} is streaming; give a unary method"


@pytest.mark.parametrize("text", ["%", base64.b64encode(b"\xff\xff\xff").decode()])
def test_what_is_no_protoset(text: str) -> None:
    assert refused(text, {}) == (
        "protoset: is not a protoset; make it with protoc --descriptor_set_out=F --include_imports"
    )


def test_a_protoset_without_its_imports(protos: str) -> None:
    library: Any = importlib.import_module("google.protobuf.descriptor_pb2")
    files = library.FileDescriptorSet.FromString(base64.b64decode(protos))
    names = [file.name for file in files.file]
    assert names == ["google/protobuf/struct.proto", "part.proto", "vision.proto"]
    backwards = library.FileDescriptorSet(file=list(files.file)[::-1])
    assert method_of(base64.b64encode(backwards.SerializeToString()).decode(), METHOD).request().big == 0
    alone = base64.b64encode(library.FileDescriptorSet(file=[files.file[2]]).SerializeToString()).decode()
    assert refused(alone, {}).startswith("protoset: is incomplete (")
    assert refused("", {}).startswith(f"method: there is no {METHOD} in its protoset; make it with protoc ")


# Answers

ROWS = [{"index": 1, "embedding": [1.5, 2]}, {"index": 0, "embedding": [3, 4]}]


def test_rows_of_numbers(protos: str) -> None:
    assert answered(protos, VECTORS, {"data": ROWS}) == [[1.5, 2], [3, 4]]
    assert answered(protos, {"vectors": "data[0].embedding"}, {"data": ROWS}) == [[1.5, 2]]
    assert answered(protos, {"vectors": "one.wide"}, {"one": {"wide": [0.5]}}) == [[0.5]]


def test_rows_in_the_order_of_the_request(protos: str) -> None:
    told = {**VECTORS, "order": "data[].index"}
    assert answered(protos, told, {"data": ROWS}) == [[3, 4], [1.5, 2]]
    assert answered(protos, told, {"data": ROWS[::-1]}) == [[3, 4], [1.5, 2]]
    with pytest.raises(ValueError, match=r"^answer.order: is \[1, 1\], but there are 2 rows"):
        answered(protos, told, {"data": [ROWS[0], ROWS[0]]})


def test_numbers_in_one_piece(protos: str) -> None:
    flat = {"flat": [1, 2, 3, 4]}
    assert answered(protos, {"vectors": "flat"}, flat) == [[1, 2, 3, 4]]
    assert answered(protos, {"vectors": "flat"}, flat, dimension=2) == [[1, 2], [3, 4]]
    assert answered(protos, {"vectors": "flat[]"}, flat, dimension=2) == [[1, 2], [3, 4]]
    assert answered(protos, {"vectors": "data[].index"}, {"data": ROWS}) == [[1, 0]]


def test_maps_by_their_keys(protos: str) -> None:
    told = {"vectors": "outputs.image_embeds.embedding"}
    assert answered(protos, told, {"outputs": {"image_embeds": ROWS[0]}}) == [[1.5, 2]]
    with pytest.raises(ValueError, match=r"no 'image_embeds' in outputs, which has pooled$"):
        answered(protos, told, {"outputs": {"pooled": ROWS[0]}})
    raw = {"vectors": "numbered.7", "encoding": "raw"}
    assert answered(protos, raw, {"numbered": {7: np.array([1, 2], np.float32).tobytes()}}) == [[1, 2]]


def test_a_struct_is_a_message_like_others(protos: str) -> None:
    told = {"vectors": "loose.fields.vector.list_value.values[].number_value"}
    assert answered(protos, told, {"loose": {"vector": [1, 2, 3]}}) == [[1, 2, 3]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_raw_bytes(protos: str, dtype: str) -> None:
    rows = [np.array(row, dtype).tobytes() for row in ([1, 2], [3, 4])]
    told = {"encoding": "raw", "dtype": dtype}
    assert answered(protos, {"vectors": "raws", **told}, {"raws": rows}) == [[1, 2], [3, 4]]
    assert answered(protos, {"vectors": "raws[1]", **told}, {"raws": rows}) == [[3, 4]]
    whole = {"prediction": b"".join(rows)}
    assert answered(protos, {"vectors": "prediction", **told}, whole, dimension=2) == [[1, 2], [3, 4]]
    assert answered(protos, {"vectors": "prediction", **told}, whole) == [[1, 2, 3, 4]]


def test_base64_of_numbers(protos: str) -> None:
    text = base64.b64encode(np.array([1, 2], np.float32).tobytes()).decode()
    told = {"vectors": "data[].base64", "encoding": "base64"}
    assert answered(protos, told, {"data": [{"base64": text}, {"base64": text}]}) == [[1, 2], [1, 2]]
    with pytest.raises(ValueError, match=r"^answer.vectors data\[\].base64: is not base64 \("):
        answered(protos, told, {"data": [{"base64": "?"}]})


def test_json_in_bytes_and_in_a_text(protos: str) -> None:
    for field, value in (("prediction", b"[[1, 2], [3, 4]]"), ("text", "[[1, 2], [3, 4]]")):
        told = {"vectors": field, "encoding": "json-string"}
        assert answered(protos, told, {field: value}) == [[1, 2], [3, 4]]
    assert answered(protos, told, {"text": json.dumps([0.25])}) == [[0.25]]


def test_npy_in_bytes(protos: str) -> None:
    np.save(file := io.BytesIO(), np.array([[1, 2], [3, 4]], np.float16))
    told = {"vectors": "prediction", "encoding": "npy"}
    assert answered(protos, told, {"prediction": file.getvalue()}) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("told", "message", "said"),
    [
        (VECTORS, {}, "has no numbers in the answer"),
        (VECTORS, {"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}, "has rows of unequal lengths"),
        (VECTORS, {"data": [{"embedding": [1]}, {}]}, "has no numbers in the answer"),
        ({"vectors": "data[1].embedding"}, {"data": ROWS[:1]}, "data has no element 1"),
        ({"vectors": "prediction", "encoding": "raw"}, {}, "has nothing in the answer"),
        ({"vectors": "raws", "encoding": "raw"}, {}, "has nothing in the answer"),
        ({"vectors": "prediction", "encoding": "raw"}, {"prediction": b"123"},
         "3 bytes are not rows of float32"),
    ],
)  # fmt: skip
def test_answers_that_are_not_as_declared(protos: str, told: Any, message: Any, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        answered(protos, told, message)
    assert said in str(caught.value)
    assert str(caught.value).startswith("answer.vectors ")


def test_an_answer_of_another_kind(protos: str) -> None:
    with pytest.raises(DecodeError):
        codec(protos, {"raw": "$jpeg"}).vectors(GrpcAnswer(b"\xff\xff\xff"))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "answer.vectors: is missing; give the path of the vectors, such as data[].embedding"),
        ({"vectors": "."}, "answer.vectors: '.' is not a path; give one such as data[].embedding"),
        ({"vectors": "data[].vector"},
         "answer.vectors data[].vector: there is no 'vector' in Row, which has index, embedding, wide,"
         " base64; give one"),
        ({"vectors": "data.embedding"},
         "answer.vectors data.embedding: a list, each a Row comes before 'embedding'; continue with []"),
        ({"vectors": "data"}, "answer.vectors data: ends at a list, each a Row; continue with []"),
        ({"vectors": "data[]"},
         "answer.vectors data[]: ends at a Row; continue with one of index, embedding, wide, base64"),
        ({"vectors": "outputs"}, "answer.vectors outputs: ends at a map; continue with one of its keys"),
        ({"vectors": "outputs[].embedding"},
         "answer.vectors outputs[].embedding: a map comes before []; continue with one of its keys"),
        ({"vectors": "numbered.a"}, "answer.vectors numbered.a: 'a' is not a key of numbered; give a number"),
        ({"vectors": "flat[][]"}, "answer.vectors flat[][]: a number comes before []; continue with nothing"),
        ({"vectors": "text.x"}, "answer.vectors text.x: a text comes before 'x'; continue with nothing"),
        ({"vectors": "kind"},
         "answer.vectors kind: is an enum or a bool; give the path of numbers, of bytes or of a text"),
        ({"vectors": "prediction"},
         "answer.encoding: answer.vectors prediction is bytes, which cannot be list; give raw or npy or"
         " json-string or base64"),
        ({**VECTORS, "order": "data[].base64"},
         "answer.order data[].base64: is not one integer per row; give a path such as data[].index, or"
         " leave it out"),
        ({**VECTORS, "order": "kind"},
         "answer.order kind: is not one integer per row; give a path such as data[].index, or leave it out"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_so(protos: str, told: Any, said: str) -> None:
    assert refused(protos, {"raw": "$jpeg"}, told) == said


def test_two_services_of_one_name_do_not_meet(protos: str, tmp_path: Path) -> None:
    messages = "message Request { bytes raw = 2; } message Answer { repeated float flat = 1; }"
    service = "service Embedder { rpc Embed(Request) returns (Answer); }"
    (tmp_path / "vision.proto").write_text(f'syntax = "proto3"; package vision.v1; {messages} {service}')
    other = method_of(descriptors(str(tmp_path / "vision.proto")), METHOD)
    assert other.request(raw=b"a").SerializeToString() == b"\x12\x01a"
    assert method_of(protos, METHOD).request(raw=b"a").SerializeToString() == b"\x4a\x01a"
