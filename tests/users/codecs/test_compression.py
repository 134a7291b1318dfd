"""Requests of each protocol compressed once, or left to grpcio; and inputs that lie in shared memory."""

import gzip
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
from tritonclient.grpc.service_pb2 import ModelInferRequest

from tests.pictures import image_set
from tests.users.ways import codec_at
from users.codecs.base import Codec
from users.codecs.compression import Compressed
from users.codecs.v2 import ALIGNED_BYTES, MemoryPlace, SharedInputs
from users.codecs.v2_grpc import V2Grpc
from users.codecs.v2_http import HEADER_LENGTH, V2Http
from users.codecs.v2_json import V2Json
from users.contract import Contract, Input

IMAGES = image_set(3)
READ = {"gzip": gzip.decompress, "deflate": zlib.decompress}
ROW = 3 * 224 * 224 * 4


@pytest.mark.parametrize("algorithm", READ)
@pytest.mark.parametrize("form", [V2Http, V2Json])
def test_over_http_the_fields_say_so(form: type[Codec], algorithm: str) -> None:
    plain, packed = (
        one.prepare(IMAGES, (1, 2)) for one in (codec_at(form), Compressed(codec_at(form), algorithm))
    )
    assert READ[algorithm](packed.body) == plain.body
    assert packed.headers == {
        **plain.headers,
        **{"Content-Encoding": algorithm, "Accept-Encoding": algorithm},
    }
    assert packed.sent_bytes == len(packed.body) < plain.sent_bytes
    assert packed.largest_reply == plain.largest_reply


@pytest.mark.parametrize("algorithm", READ)
def test_over_grpc_the_message_alone_is_compressed(algorithm: str) -> None:
    codec = Compressed(codec_at(V2Grpc), algorithm)
    packed, plain = codec.prepare(IMAGES, (0,)), codec_at(V2Grpc).prepare(IMAGES, (0,))
    assert (READ[algorithm](packed.body), packed.packing, packed.headers) == (plain.body, algorithm, {})
    assert (codec.compression, codec.path, codec.name) == (algorithm, V2Grpc.path, "v2-grpc")


def test_a_message_that_would_become_no_smaller_is_sent_as_it_is() -> None:
    class Noise(V2Grpc):
        def prepare(self, images, indices, request_id=""):  # type: ignore[no-untyped-def]
            return replace(super().prepare(images, indices), body=np.random.default_rng(0).bytes(5_000))

    made = Compressed(codec_at(Noise), "gzip").prepare(IMAGES, (0,))
    assert (made.sent_bytes, made.packing) == (5_000, "")


def test_what_grpcio_compresses_is_weighed_before_any_load() -> None:
    codec = Compressed(codec_at(V2Grpc), "deflate", by_library=True)
    codec.weigh(IMAGES, [(0,), (1,)])
    plain = codec_at(V2Grpc).prepare(IMAGES, (1,)).body
    made = codec.prepare(IMAGES, (1,))
    assert (made.body, made.packing, made.sent_bytes) == (plain, "", len(zlib.compress(plain)))
    assert codec.prepare(IMAGES, (2,)).sent_bytes == len(plain), "of one that was not weighed it is not known"


TWO = Contract(
    (Input("picture", "UINT8", (3, 2, 2), "picture", "NCHW"), Input("mask", "INT64", (2,), "ones")),
    output="vector",
)


@pytest.mark.parametrize(
    ("at", "indices", "place"),
    [
        (0, (0,), MemoryPlace("r", 0, 12)),
        (0, (2, 3), MemoryPlace("r", 24, 24)),
        (0, (4, 0, 1), MemoryPlace("r", 48, 36)),
        (1, (0,), MemoryPlace("r", ALIGNED_BYTES, 16)),
        (1, (3, 4, 0), MemoryPlace("r", ALIGNED_BYTES + 48, 48)),
    ],
)
def test_items_of_a_request_are_neighbours_in_a_region(
    at: int, indices: tuple[int, ...], place: MemoryPlace
) -> None:
    inputs = SharedInputs("r", TWO, count=5, most=3)
    assert (inputs.place(TWO.inputs[at], indices), inputs.rows, inputs.size) == (place, 7, 2 * ALIGNED_BYTES)


def test_items_that_are_no_neighbours_have_no_place() -> None:
    with pytest.raises(ValueError, match="no neighbours"):
        SharedInputs("r", TWO, count=5, most=3).place(TWO.inputs[0], (0, 2))


def test_a_request_names_places_and_holds_no_tensor() -> None:
    http, grpc = codec_at(V2Http), codec_at(V2Grpc)
    for codec in (http, grpc):
        assert isinstance(codec, (V2Http, V2Grpc))
        codec.shared = SharedInputs.of(codec.endpoint.contract, "inferswarm-1-ab", "cell", IMAGES, 2)
    made = http.prepare(IMAGES, (2, 0))
    told = json.loads(bytes(made.body))["inputs"]
    places = {"shared_memory_region": "inferswarm-1-ab-cb8787e2", "shared_memory_byte_size": 2 * ROW}
    where = {**places, "shared_memory_offset": 2 * ROW}
    shape = {"shape": [2, 3, 224, 224], "datatype": "FP32", "parameters": where}
    assert told == [{"name": "input", **shape}]
    assert HEADER_LENGTH not in made.headers, "the whole body is the head"
    request = ModelInferRequest.FromString(bytes(grpc.prepare(IMAGES, (2, 0)).body))
    found = {
        key: getattr(one, str(one.WhichOneof("parameter_choice")))
        for key, one in request.inputs[0].parameters.items()
    }
    assert (found, list(request.raw_input_contents)) == (where, [])
