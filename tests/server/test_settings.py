from dataclasses import replace

import pytest

from server.errors import SetUpError
from server.settings import Settings
from server.spec import ModelSpec

SECONDS = "seconds, more than 0 and at most 86,400"


def test_an_empty_environment_gives_the_defaults():
    settings = Settings.from_env({})
    assert settings == Settings()
    assert (settings.host, settings.port, settings.max_batch) == ("127.0.0.1", 8002, 32)
    assert settings.spec == ModelSpec("ViT-B-32", "", 0)


def test_settings_survive_the_environment():
    settings = Settings(
        *("ViT-B-16", "tag", 7, "cpu", "fp16", "0.0.0.0", 9000, 8, 1000, 2000, 3, "gpu:8001", "clip", 4)
    )
    limits = {"max_queue": 0, "max_decode_s": 0.5, "max_receive_s": 1e-3, "max_drain_s": 9}
    settings = replace(settings, **limits, names="clip", token="secret", tls_cert="a.pem", tls_key="b.pem")
    assert Settings.from_env(settings.to_env()) == settings
    assert not [name for name, value in vars(Settings()).items() if getattr(settings, name) == value]


@pytest.mark.parametrize(
    ("name", "value", "takes"),
    [
        ("PORT", "none", "a whole number from 1 to 65535"),
        ("PORT", "65536", "a whole number from 1 to 65535"),
        ("MAX_BATCH", "0", "a whole number of 1 or more"),
        ("THREADS", "-1", "a whole number of 0 or more"),
        *(("UPSTREAM", it, "host:port of a Triton's gRPC") for it in ("gpu", "http://gpu:8001", "gpu:0")),
        ("UPSTREAM_CALLS", "0", "a whole number of 1 or more"),
        ("MAX_QUEUE", "-1", "a whole number of 0 or more"),
        ("MAX_DRAIN_S", "0", "a whole number of 1 or more"),
        *(("MAX_DECODE_S", it, SECONDS) for it in ("0", "-1", "nan", "inf", "ten", "", "86401")),
        ("PRECISION", "bf16", "fp32 or fp16"),
        ("DEVICE", "tpu", "auto, cpu, mps, cuda or cuda:N"),
    ],
)
def test_a_bad_variable_is_named(name, value, takes):
    with pytest.raises(SetUpError) as caught:
        Settings.from_env({f"INFERSWARM_{name}": value})
    assert str(caught.value) == f"INFERSWARM_{name} is {value!r}: it takes {takes}."


def test_weights_are_named_for_people_and_for_files():
    assert ModelSpec().weights == "random (seed 0)"
    assert ModelSpec(seed=3).slug == "ViT-B-32-random-seed-3"
    assert ModelSpec(pretrained="/somewhere/my model.pt").weights == "my model.pt"
    assert ModelSpec(pretrained="/somewhere/my model.pt").slug == "ViT-B-32-my-model.pt"


def test_a_gateway_has_several_calls_under_way_and_a_part_of_its_own():
    assert (Settings().at_once, Settings().parts[-1]) == (1, "compute")
    gateway = Settings(upstream="gpu:8001", upstream_calls=5)
    assert (gateway.at_once, gateway.parts[-1]) == (5, "upstream")
