"""How long an emulated model sleeps, and what asks for one."""

import pytest

from server.embedded.options import PROFILES, EmulationProfile, Wanted, parse, profile_of, wanted
from server.errors import SetUpError

A100 = "3.11 ms + 1.29 ms an image"
FIRST = "more for the first of a batch size"


def test_the_published_profiles():
    a100 = PROFILES["a100"]
    assert (a100.base_ms, a100.per_image_ms) == (3.11, 1.29)
    assert 119 * a100.base_ms + 679 * a100.per_image_ms == pytest.approx(1243.848, rel=0.003)
    assert PROFILES["rtx4090"] == EmulationProfile(3.12, 1.29, name="rtx4090")
    assert PROFILES["rtx4080"] == EmulationProfile(4.03, 1.67, name="rtx4080")


@pytest.mark.parametrize(
    ("text", "profile", "described"),
    [
        ("a100", EmulationProfile(3.11, 1.29, name="a100"), f"a100: {A100}"),
        ("40+0", EmulationProfile(40, 0), "40 ms + 0 ms an image"),
        (" 3.1+1.3 ", EmulationProfile(3.1, 1.3), "3.1 ms + 1.3 ms an image"),
        ("40+0/500", EmulationProfile(40, 0, 500), f"40 ms + 0 ms an image, 500 ms {FIRST}"),
        ("a100/90000e-2", EmulationProfile(3.11, 1.29, 900, "a100"), f"a100: {A100}, 900 ms {FIRST}"),
        (
            "5+0,3:300,7:9.5/20",
            EmulationProfile(5, 0, 20, sizes_ms=((3, 300), (7, 9.5))),
            f"5 ms + 0 ms an image, 300 ms for a batch of 3, 9.5 ms for a batch of 7, 20 ms {FIRST}",
        ),
    ],
)
def test_service_times_are_read_and_described(text, profile, described):
    assert profile_of(text) == profile
    assert profile.describe() == described


@pytest.mark.parametrize(
    "text",
    [
        *("h100", "40", "40+", "+1", "-1+2", "nan+1", "1+2/", "1+2+3", "60001+0", ""),
        *("5+0,", "5+0,3", "5+0,3:", "5+0,x:3", "5+0,3:-1", "5+0,3:nan", "5+0,3.5:3"),
    ],
)
def test_what_is_no_service_time_is_said_in_a_sentence(text):
    with pytest.raises(SetUpError) as caught:
        profile_of(text)
    assert str(caught.value) == (
        f"--emulate {text!r} is not a service time: give a100, rtx4080, rtx4090, or milliseconds as in"
        f" 3.1+1.3 (base + an image), 5+0,3:300 (300 for a batch of 3) "
        "or 40+0/500 (500 more for the first of a batch size), each at most 60000."
    )


@pytest.mark.parametrize("text", ["5+0,3:300,3:1", "a100,3:9,3:9", "5+0,0:3", "5+0,-1:3", "5+0,33:3"])
def test_each_size_is_given_once_and_is_one_that_the_model_takes(text):
    with pytest.raises(SetUpError) as caught:
        profile_of(text)
    assert str(caught.value) == f"--emulate {text!r}: give each batch size once, from 1 to 32."


def test_the_smallest_and_the_largest_size_are_taken():
    assert profile_of("5+0,1:3,32:9").sizes_ms == ((1, 3), (32, 9))


def test_a_profile_sets_the_parameters_of_its_model():
    assert EmulationProfile(3.1, 1.3, 500.0, "x").parameters() == {
        "base_ms": "3.1",
        "per_image_ms": "1.3",
        "cold_ms": "500.0",
        "emulated": "x: 3.1 ms + 1.3 ms an image, 500 ms more for the first of a batch size",
    }
    assert EmulationProfile(5, 0, sizes_ms=((3, 300.0),)).parameters()["sizes_ms"] == '{"3": 300.0}'


def test_emulating_starts_that_server_alone_unless_others_are_named():
    assert wanted(parse([])) == Wanted(("pytorch", "onnx", "compiled"))
    emulated = wanted(parse(["--emulate", "40+0"]))
    assert emulated == Wanted(("emulated",), EmulationProfile(40, 0))
    assert emulated.engines == ()
    both = wanted(parse(["--emulate", "40+0", "--only", "onnx,emulated"]))
    assert both == Wanted(("onnx", "emulated"), EmulationProfile(40, 0))
    assert both.engines == both.exported == ("onnx",)
    torch = wanted(parse(["--precision", "fp16", "--only", "pytorch,torch,inductor"]))
    assert (torch.engines, torch.exported) == (("torch", "inductor"), ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--only emulated", "--only emulated needs a service time: give --emulate a100, or see --help."),
        (
            "--only onnx --emulate a100",
            "--emulate a100 has no server to configure: name emulated in --only, or leave it out.",
        ),
        (
            "--precision fp16",
            "--precision fp16: onnx and compiled can only compute in fp32: leave them out, and use some of "
            "pytorch, torch, inductor.",
        ),
        (
            "--precision fp16 --only pytorch,openvino",
            "--precision fp16: openvino can only compute in fp32: leave it out, and use some of "
            "pytorch, torch, inductor.",
        ),
        (
            "--precision fp16 --emulate a100",
            "--precision fp16 applies to pytorch, torch, inductor: use one of them, or leave it out.",
        ),
    ],
)
def test_one_option_without_the_other_is_refused(options, sentence):
    with pytest.raises(SetUpError) as caught:
        wanted(parse(options.split()))
    assert str(caught.value) == sentence
