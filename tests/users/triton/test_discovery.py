"""Contracts from what servers say: metadata and configurations as Triton and MLServer give them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from tritonclient.grpc import model_config_pb2, service_pb2

from users.contract import Contract, Input
from users.errors import TargetError
from users.inputs.preparation import CLIP, PRESETS
from users.triton.discovery import Asked, discovered, payload_of

VECTOR = ("embedding", "FP32", [-1, 512])
PIXELS = [("input", "FP32", [-1, 3, 224, 224])]
PICTURE = Input("input", "FP32", (3, 224, 224), "picture", "NCHW")
PIXELS_GUESSED = "Pixels are prepared as for clip, by default: --prepare says how."
MANY = (("tokens", "FP32", [-1, 50, 768]), ("embeds", "FP16", [-1, 768]), ("pooled", "FP16", [-1, 768]))


def says(guess: str) -> str:
    """A guess of what an input holds, with the option that says otherwise."""
    name = guess.split()[1]
    return f"{guess}: --input {name}=HOW says otherwise."


Stated = Sequence[tuple[str, str, list[int]]]
Json = dict[str, Any]


def metadata(inputs: Stated, outputs: Stated = (VECTOR,), platform: str = "onnxruntime_onnx") -> Json:
    """As `GET /v2/models/M` gives them."""
    keys = ("name", "datatype", "shape")
    stated = {"inputs": inputs, "outputs": outputs}
    listed = {
        side: [dict(zip(keys, one, strict=True)) for one in tensors] for side, tensors in stated.items()
    }
    return {"name": "m", "versions": ["1"], "platform": platform, **listed}


def config(max_batch: int = 32, **formats: str) -> Json:
    """As `GET /v2/models/M/config` gives it, with the formats of inputs by name."""
    given = [{"name": name, "format": f"FORMAT_{text}", "optional": False} for name, text in formats.items()]
    return {"name": "m", "max_batch_size": max_batch, "input": given}


def found(takes: Stated, outputs: Stated = (VECTOR,), setting: Json | None = None, **asked: Any) -> Contract:
    """Of a Triton that batches, where nothing else is said."""
    model = asked.pop("model", "m")
    return discovered(metadata(takes, outputs), setting or config(), Asked(**asked), model)


def refused(*arguments: Any, **more: Any) -> str:
    """The sentence that is raised."""
    with pytest.raises(TargetError) as caught:
        found(*arguments, **more)
    return str(caught.value)


def plain(inputs: Stated, **asked: Any) -> Contract:
    """Of a V2 server that is no Triton."""
    return discovered(metadata(inputs), None, Asked(**asked), "m")


def test_the_published_model() -> None:
    contract = found(PIXELS)
    assert contract == Contract(
        (PICTURE,), CLIP, output="embedding", dimension=512, max_batch=32, guesses=(PIXELS_GUESSED,)
    )
    assert payload_of(contract) == "fp32"
    assert Contract.from_dict(asdict(contract)) == contract


def test_what_is_declared_is_no_guess() -> None:
    contract = found(PIXELS, prepare=PRESETS["dinov2"], output="embedding", max_batch=8)
    assert contract.preparation == PRESETS["dinov2"]
    assert contract.max_batch == 8
    assert contract.guesses == ()


def test_siglip_in_fp16_of_384_pixels_with_two_outputs() -> None:
    outputs = [("tokens", "FP16", [-1, 729, 1152]), ("pooled", "FP16", [-1, 1152])]
    contract = found([("pixel_values", "FP16", [-1, 384, 384, 3])], outputs, model="siglip_so400m")
    assert contract.inputs == (Input("pixel_values", "FP16", (384, 384, 3), "picture", "NHWC"),)
    assert (contract.output, contract.dimension) == ("pooled", 1152)
    assert payload_of(contract) == "fp16"


@pytest.mark.parametrize(
    ("dtype", "shape", "why"),
    [
        ("UINT8", [-1, -1], "with zeros behind the shorter ones of a batch"),  # DALI's
        *(("BYTES", shape, "by its name") for shape in ([-1, 1], [-1], [-1, -1])),
    ],
)
def test_bytes_are_a_jpeg(dtype: str, shape: list[int], why: str) -> None:
    contract = found([("image", dtype, shape)])
    assert contract.inputs == (Input("image", dtype, tuple(shape[1:]), "jpeg"),)
    assert contract.guesses == (says(f"Input image is taken for an encoded JPEG, {why}"),)
    assert payload_of(contract) == payload_of(replace(contract, inputs=(*contract.inputs, PICTURE))) == "jpeg"


@pytest.mark.parametrize("name", ["TEXT", "query", "input_prompt", "captions"])
def test_bytes_are_a_text_by_their_name(name: str) -> None:
    contract = found([(name, "BYTES", [-1, 1])])
    assert contract.inputs == (Input(name, "BYTES", (1,), "text"),)
    assert contract.guesses == (says(f"Input {name} is taken for a text, by its name"),)
    assert contract.of_text
    assert payload_of(contract) == "text"


SENTENCES, INPUT0 = ("sentences", "BYTES", [-1, 1]), ("INPUT0", "BYTES", [-1])


@pytest.mark.parametrize(
    ("one", "sends", "declared", "role"),
    [
        (SENTENCES, "", None, "text"),
        (SENTENCES, "picture", None, "text"),
        (("IMG", "BYTES", [-1, 1]), "text", None, "jpeg"),
        (INPUT0, "text", None, "text"),
        (INPUT0, "picture", None, "jpeg"),
        (INPUT0, "", None, "jpeg"),
        (INPUT0, "", "text", "text"),
        (SENTENCES, "text", "picture", "jpeg"),
        (("raw", "UINT8", [-1, -1]), "text", "picture", "jpeg"),
        (("x", "FP32", [-1, 3, 8, 8]), "text", "picture", "picture"),
        (("x", "FP32", [-1, 3, 8, 8]), "", "ones", "ones"),
        (("x", "INT64", [-1, 128]), "", "ids", "ids"),
        (("x", "INT64", [-1, 128]), "", "zeros", "zeros"),
        (("mask", "INT64", [-1, 128]), "", "random", "random"),
    ],
)
def test_bytes_of_any_name_are_what_is_declared_or_sent(
    one: tuple[str, str, list[int]], sends: str, declared: str | None, role: str
) -> None:
    contract = found([one], sends=sends, inputs={one[0]: declared} if declared else {})
    (made,) = contract.inputs
    assert made.role == role
    assert contract.of_text == (role in ("text", "ids"))
    assert any(f"Input {made.name} " in guess for guess in contract.guesses) == (declared is None)


@pytest.mark.parametrize(
    ("one", "declared"),
    [
        (PIXELS[0], "text"),
        (PIXELS[0], "ids"),
        (INPUT0, "ones"),
        (INPUT0, "ids"),
        (("x", "INT64", [-1, 2, 77]), "ids"),
        (("x", "FP32", [-1, 5]), "picture"),
        (("x", "BYTES", [-1, 2]), "text"),
    ],
)
def test_what_cannot_hold_what_is_declared(one: tuple[str, str, list[int]], declared: str) -> None:
    assert f"cannot hold {declared}; give --input {one[0]}=HOW" in refused([one], inputs={one[0]: declared})


@pytest.mark.parametrize("length", [5, 77, 128, 512])
@pytest.mark.parametrize("dtype", ["INT32", "INT64"])
def test_what_goes_with_ids_is_never_random(dtype: str, length: int) -> None:
    names = ("input_ids", "attention_mask", "token_type_ids", "segment_ids")
    contract = found([(name, dtype, [-1, length]) for name in names])
    assert [one.role for one in contract.inputs] == ["ids", "ones", "zeros", "zeros"]
    assert contract.inputs[0].most == {77: 49_408}.get(length, 1_000)
    assert contract.of_text


def test_masks_of_numbers_are_ones_too() -> None:
    contract = found([*PIXELS, ("pixel_mask", "FP32", [-1, 224, 224]), ("words_mask", "BYTES", [-1, 2])])
    assert [one.role for one in contract.inputs] == ["picture", "ones", "random"]


def test_a_picture_with_a_text() -> None:
    contract = found([("text", "BYTES", [-1, 1]), ("pixels", "UINT8", [-1, 3, 224, 224])])
    assert [one.role for one in contract.inputs] == ["text", "picture"]
    assert payload_of(contract) == "uint8"
    assert not contract.of_text
    assert contract.guesses[-1].startswith("Pictures are resized and cropped as for clip, by default: --prep")


def test_a_text_tower() -> None:
    longs = [(name, "INT64", [-1, 77]) for name in ("input_ids", "attention_mask", "token_type_ids")]
    contract = found([*longs, ("position_ids", "INT32", [-1, 77])])
    assert contract.inputs == (
        Input("input_ids", "INT64", (77,), "ids", most=49_408),
        Input("attention_mask", "INT64", (77,), "ones"),
        Input("token_type_ids", "INT64", (77,), "zeros"),
        Input("position_ids", "INT32", (77,), "random", most=77),
    )
    assert contract.guesses == (
        says(
            "Input input_ids is taken for the token ids of a text, of which random ones below 49,408 are sent"
        ),
        says("Input attention_mask is filled with ones, as a mask without padding"),
        says("Input token_type_ids is filled with zeros, as for a single text"),
        says("Input position_ids is filled with random positions below 77"),
    )
    assert payload_of(contract) == "text"


def test_a_tokenizer_says_the_ids_of_a_text_of_any_length() -> None:
    contract = found([("ids", "INT64", [-1, -1])], shapes={"ids": "B,128"}, tokenizer="tokenizer.json")
    assert contract.inputs == (Input("ids", "INT64", (128,), "ids"),)
    assert contract.tokenizer == "tokenizer.json"
    assert contract.guesses == (says("Input ids is taken for the token ids of a text"),)


@pytest.mark.parametrize(
    ("dtype", "shape", "role", "most"),
    [
        ("INT32", [-1, 64], "ids", 32_000),
        ("INT64", [-1, 1, 77], "ids", 49_408),
        ("INT64", [-1, 2, 77], "random", 0),
        ("INT64", [-1, 128], "random", 0),
        ("INT16", [-1, 77], "random", 0),
        ("FP32", [-1, 77], "random", 0),
        ("FP64", [-1, 3, 224, 224], "random", 0),
        ("FP32", [-1, 50, 768], "random", 0),
        ("BYTES", [-1, 2], "random", 0),
    ],
)
def test_what_is_no_picture(dtype: str, shape: list[int], role: str, most: int) -> None:
    contract = found([("x", dtype, shape)])
    (one,) = contract.inputs
    assert (one.shape, one.role, one.layout, one.most) == (tuple(shape[1:]), role, "", most)
    assert payload_of(contract) == ("text" if role == "ids" else "random")
    stated = f"{dtype} [{','.join(map(str, shape[1:]))}]"
    guessed = says(f"Input x is filled with random values, since the meaning of its {stated} is unknown")
    assert role == "ids" or contract.guesses == (guessed,)


@pytest.mark.parametrize(
    ("shape", "stated", "layout"),
    [
        ([3, 224, 224], "NHWC", "NCHW"),
        ([224, 224, 3], "NCHW", "NHWC"),
        ([3, 224, 3], "NHWC", "NHWC"),
        ([3, 224, 3], "NCHW", "NCHW"),
        ([3, 224, 3], "NONE", "NCHW"),
    ],
)
def test_of_two_possible_layouts_it_is_the_formats(shape: list[int], stated: str, layout: str) -> None:
    contract = found([("input", "FP32", [-1, *shape])], setting=config(input=stated))
    assert [one.layout for one in contract.inputs] == [layout]
    guessed = "Input input is taken as NCHW, although its last dimension could also be the channels."
    assert contract.guesses == ((guessed,) if stated == "NONE" else ()) + (PIXELS_GUESSED,)


@pytest.mark.parametrize(
    ("shape", "stated", "said"),
    [
        ([224, 224, 4], "NONE", "4 channels"),
        ([1, -1, -1], "NONE", "1 channel"),
        ([6, 100, 200], "NCHW", "6 channels"),
        ([100, 200, 2], "NHWC", "2 channels"),
    ],
)
def test_a_picture_that_is_not_rgb(shape: list[int], stated: str, said: str) -> None:
    written = ",".join(map(str, (-1, *shape)))
    assert refused([("input", "FP32", [-1, *shape])], setting=config(input=stated)) == (
        f"takes input FP32 [{written}], a picture input of {said}: inferswarm prepares RGB; put a model in"
        " front of it that takes 3"
    )


def test_numpy_has_no_bf16() -> None:
    assert refused([("input", "BF16", [-1, 3, 224, 224])]) == (
        "takes input BF16 [-1,3,224,224]: input input: cannot make values of type BF16; serve it as another,"
        " such as FP32"
    )


def test_inputs_that_may_be_left_out() -> None:
    told = config(input="NCHW", scale="NONE")
    told["input"][1]["optional"] = True
    for more, names in (
        ({}, ["input"]),
        ({"shapes": {"scale": "B,1"}}, ["input", "scale"]),
        ({"inputs": {"scale": "ones"}}, ["input", "scale"]),
    ):
        contract = found([PIXELS[0], ("scale", "FP32", [-1, 1])], setting=told, **more)
        assert [one.name for one in contract.inputs] == names


@pytest.mark.parametrize(
    ("model", "platform", "preset"),
    [
        ("google_SigLIP2", "", "siglip"),
        ("dinov2_base", "", "dinov2"),
        ("resnet50", "", "imagenet"),
        ("m", "pytorch_imagenet", "imagenet"),
        ("openclip", "onnxruntime_onnx", "clip"),
    ],
)
def test_the_preparation_is_guessed_by_names(model: str, platform: str, preset: str) -> None:
    contract = discovered(metadata(PIXELS, platform=platform), config(), Asked(), model)
    assert contract.preparation == PRESETS[preset]
    why = "by default" if preset == "clip" else "by the model's name"
    assert contract.guesses == (f"Pixels are prepared as for {preset}, {why}: --prepare says how.",)


# Shapes that are asked about


def test_all_open_inputs_in_one_sentence() -> None:
    nhwc, open_ = ("nhwc", "UINT8", [-1, -1, -1, 3]), ("any", "FP16", [-1, -1, -1, -1])
    inputs = [("ids", "INT64", [-1, -1]), nhwc, PIXELS[0], open_]
    assert refused(inputs, shapes={"any": "B,3,-1,-1"}) == (
        "leaves sizes of its inputs open (ids INT64 [-1,-1], nhwc UINT8 [-1,-1,-1,3], any FP16"
        " [-1,-1,-1,-1]); give --shape ids=B,77 --shape nhwc=B,384,384,3 --shape any=B,3,384,384, with the"
        " sizes that you serve"
    )


@pytest.mark.parametrize(
    ("dtype", "shape", "example"),
    [
        ("FP32", [1, 3, 224, 224], "B,3,224,224"),
        ("FP32", [-1, 3, -1, -1], "B,3,384,384"),
        ("FP32", [-1, 224, 224, -1], "B,224,224,3"),
        ("FP32", [3, 224, 224], "3,224,224"),
        ("UINT8", [-1], "-1"),
        ("UINT8", [-1, -1], "B,-1"),
        ("BYTES", [-1], "B"),
        ("INT64", [-1, -1], "B,77"),
        ("FP32", [8, 16], "8,16"),
    ],
)
def test_without_a_batch_size_the_batch_is_asked_about(dtype: str, shape: list[int], example: str) -> None:
    stated = ",".join(map(str, shape))
    asked = (
        f"(x {dtype} [{stated}]); give --shape x={example} (B where the batch goes; without B a request is"
    )
    said = refused([("x", dtype, shape)], setting=config(0))
    assert said == f"has max_batch_size 0, so the batch dimension is unknown {asked} one item)"
    # What it names is taken.
    assert found([("x", dtype, shape)], setting=config(0), shapes={"x": example}).inputs[0].name == "x"


@pytest.mark.parametrize(
    ("first", "text", "max_batch", "found_as"),
    [
        ([-1], "B,3,224,224", 0, (True, 0)),
        ([-1], "b, 3, 224, 224", 4, (True, 4)),
        ([], "3,224,224", 8, (False, 1)),
        # A dimension of 1 is a batch of one.
        ([1], "B,3,224,224", 0, (True, 1)),
        ([1], "1,3,224,224", 0, (True, 1)),
    ],
)
def test_whether_there_is_a_batch(first: list[int], text: str, max_batch: int, found_as: object) -> None:
    stated = [("input", "FP32", [*first, 3, 224, 224])], [("embedding", "FP32", [*first, 512])]
    contract = found(*stated, config(0), shapes={"input": text}, max_batch=max_batch)
    assert (contract.inputs, contract.dimension) == ((PICTURE,), 512)
    assert (contract.batched, contract.max_batch) == found_as


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3,B,224,224", "cannot have the shape '3,B,224,224' of input input; "),
        ("B,3,0,224", "cannot have the shape 'B,3,0,224' of input input; "),
        ("B,3,,224", "cannot have the shape 'B,3,,224' of input input; "),
        ("B,3,224", "takes input FP32 [-1,3,-1,-1], but --shape input=B,3,224 does not fit; "),
        ("B,4,224,224", "takes input FP32 [-1,3,-1,-1], but --shape input=B,4,224,224 does not fit; "),
        ("3,224,224", "takes batches, but --shape input=3,224,224 has no batch; "),
        ("B,3,65536,65536", "would take items of [3,65536,65536] as input input, more than 67,108,864"),
    ],
)
def test_a_declared_shape_that_will_not_do(text: str, said: str) -> None:
    sentence = refused([("input", "FP32", [-1, 3, -1, -1])], shapes={"input": text})
    assert sentence.startswith(said)
    assert "--shape input=" in sentence.partition("give")[2]


def test_a_batch_of_a_fixed_number_is_none() -> None:
    sentence = refused([("input", "FP32", [8, 16])], setting=config(0), shapes={"input": "B,16"})
    assert sentence.startswith("takes input FP32 [8,16], but --shape input=B,16 does not fit; ")


def test_a_batch_in_all_inputs_or_in_none() -> None:
    inputs = [("a", "FP32", [-1, 3, 224, 224]), ("b", "INT64", [77])]
    sentence = refused(inputs, setting=config(0), shapes={"a": "B,3,224,224", "b": "77"})
    said = "would have a batch dimension in some inputs and none in b; give each a --shape INPUT=SHAPE that"
    assert sentence == f"{said} begins with B, or none"


# The output


def test_the_only_float_output_of_a_vector() -> None:
    outputs = [("ids", "INT64", [-1, 1]), ("tokens", "FP32", [-1, 50, 512]), ("out", "FP64", [-1, -1])]
    contract = found(PIXELS, outputs)
    assert (contract.output, contract.dimension) == ("out", 0)


def test_outputs_are_listed_where_one_must_be_named() -> None:
    listed = "tokens FP32 [-1,50,768], embeds FP16 [-1,768], pooled FP16 [-1,768]"
    several = "has several outputs that could be the vector of model 'm'"
    assert refused(PIXELS, MANY) == f"{several}: its outputs are {listed}; choose one with --output NAME"
    assert refused(PIXELS, MANY, output="embed").startswith(
        f"has no output 'embed' of model 'm'; its outputs are {listed}; "
    )
    assert found(PIXELS, MANY, output="embeds").output == "embeds"
    assert "of which an item has several" in refused(PIXELS, MANY, output="tokens")
    for shape in ([-1, -1, 768], [-1, 50, 768], [-1, 512, 7, 7]):
        tokens = [("last_hidden_state", "FP32", shape)]
        for output in ("", "last_hidden_state"):
            assert "of which an item has several" in refused(PIXELS, tokens, output=output)
    pooled = [*tokens, ("sentence_embedding", "FP32", [-1, 768])]
    assert found(PIXELS, pooled).output == "sentence_embedding"


@pytest.mark.parametrize(
    ("shape", "dimension"),
    [([-1, 512, 1, 1], 512), ([-1, 1, 512], 512), ([-1, 1, -1], 0), ([-1, 1], 1), ([-1], 1), ([-1, 1, 1], 1)],
)
def test_the_dimension_is_all_that_an_item_has(shape: list[int], dimension: int) -> None:
    for outputs in ([("out", "FP32", shape)], [("out", "FP32", shape), ("count", "INT64", [-1, 8])]):
        assert found([("x", "FP32", [-1, 8])], outputs).dimension == dimension
    scale = ("logit_scale", "FP32", [1])
    assert found(PIXELS, [scale, VECTOR]).output == "embedding"


def test_a_vector_of_another_type() -> None:
    outputs = [("out", "BF16", [-1, 512])]
    said = refused(PIXELS, outputs, output="out")
    assert said.startswith(
        "gives output out as BF16, but vectors must be FP32, FP16, FP64; its outputs are out "
    )
    assert refused(PIXELS, outputs).startswith(
        "has no output that is clearly the vector of model 'm': its out"
    )


# Other servers, other forms


def test_mlserver_has_no_configuration() -> None:
    contract = plain(PIXELS, max_batch=16)
    assert contract.inputs == (PICTURE,)
    assert (contract.batched, contract.max_batch) == (True, 16)
    guessed = "The first dimension of input is taken as the batch: --shape says otherwise."
    assert contract.guesses == (guessed, PIXELS_GUESSED)
    assert plain([("image", "BYTES", [-1])]).inputs == (Input("image", "BYTES", (), "jpeg"),)


def test_another_server_with_fixed_shapes_is_asked_about() -> None:
    with pytest.raises(
        TargetError, match=r"^declares no batch, .*\); give --shape input=B,3,224,224 \(B where"
    ):
        plain([("input", "FP32", [1, 3, 224, 224])])
    told = plain([("input", "FP32", [1, 3, 224, 224])], shapes={"input": "B,3,224,224"})
    assert (told.batched, told.max_batch, told.guesses) == (True, 1, (PIXELS_GUESSED,))


def test_a_loose_server_is_overruled_by_what_is_declared() -> None:
    contract = plain([("input", "FP32", [-1])], shapes={"input": "B,224,224,3"})
    assert contract.inputs == (Input("input", "FP32", (224, 224, 3), "picture", "NHWC"),)


def test_a_server_that_states_no_output() -> None:
    told = metadata(PIXELS, [])
    contract = discovered(told, None, Asked(output="embedding"), "m")
    assert (contract.output, contract.dimension) == ("embedding", 0)
    with pytest.raises(TargetError, match="its outputs are none; choose one with --output NAME"):
        discovered(told, None, Asked(), "m")


def test_a_server_that_states_no_input() -> None:
    with pytest.raises(
        TargetError, match=r"^declares no input of model .m.; describe the endpoint in a file"
    ):
        plain([])


WIDE, ENDLESS = ([{"name": "x", "datatype": "FP32", "shape": [size]}] for size in ("wide", float("inf")))


@pytest.mark.parametrize("inputs", [[{"name": "x"}], ["x"], 5, WIDE, ENDLESS, None])
def test_what_is_no_metadata(inputs: Any) -> None:
    with pytest.raises(
        TargetError, match="metadata that does not follow the KServe V2 protocol; give a serv"
    ):
        discovered({"inputs": inputs} if inputs else [], None, Asked(), "m")  # type: ignore[arg-type]


def test_grpc_says_the_same() -> None:
    inputs = [("ids", "INT64", [-1, 77]), ("pixel_values", "FP16", [-1, 384, 384, 3])]
    over_http, setting = metadata(inputs), config(16)
    setting["input"] = [{"name": "pixel_values", "format": "FORMAT_NHWC", "dims": [384, 384, 3]}]
    message = ParseDict(over_http, service_pb2.ModelMetadataResponse())
    told = ParseDict(setting, model_config_pb2.ModelConfig())
    as_grpc = [MessageToDict(one, preserving_proto_field_name=True) for one in (message, told)]
    assert as_grpc[0]["inputs"][0]["shape"] == ["-1", "77"]
    contract = discovered(as_grpc[0], as_grpc[1], Asked(), "siglip")
    assert contract == discovered(over_http, setting, Asked(), "siglip")
    assert contract.inputs == (
        Input("ids", "INT64", (77,), "ids", most=49_408),
        Input("pixel_values", "FP16", (384, 384, 3), "picture", "NHWC"),
    )


def test_grpc_leaves_a_batch_size_of_0_out() -> None:
    with pytest.raises(TargetError, match=r"^has max_batch_size 0, so the batch"):
        discovered(metadata(PIXELS), {"name": "m"}, Asked(), "m")
