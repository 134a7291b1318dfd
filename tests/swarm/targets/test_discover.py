"""What options say of endpoints of any model, and which of these share a server."""

from dataclasses import replace

import pytest

from swarm.errors import UsageError
from swarm.targets.discover import (
    ASKED,
    asked_of,
    check_used,
    finished,
    own_endpoints,
    per_endpoint,
    with_servers,
)
from tests.swarm.options.test_parse import options
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.inputs.preparation import CLIP, PRESETS
from users.triton.api import STEPS_KNOWN
from users.triton.discovery import Asked

OLD = Endpoint("old", "triton", "grpc", "fp32", "gpu:8001", "siglip")
NEW = replace(OLD, name="new")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((), {}),
        (("new=siglip",), {"new": "siglip"}),
        (("clip", "new=siglip"), {"old": "clip", "new": "siglip"}),
        (("new=siglip", "clip"), {"old": "clip", "new": "siglip"}),
        (("new=a=b",), {"new": "a=b"}),
    ],
)
def test_a_value_for_one_or_for_all(given: tuple[str, ...], told: dict[str, str]) -> None:
    assert per_endpoint("prepare", given, [OLD, NEW]) == told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("odl=clip", "--prepare odl=clip: there is no --endpoint 'odl' that takes it; those are old, new"),
        ("new= ", "--prepare: has no value for new; give NAME=VALUE"),
    ],
)
def test_a_value_for_nobody_and_nothing_for_somebody(given: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        per_endpoint("prepare", [given], [OLD, NEW])
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("given", "endpoints", "known"),
    [
        (("nonsense",), [], "none, since files set it themselves"),
        (("clip", "old=siglip", "new=siglip"), [OLD, NEW], "old, new"),
        (("siglip", "clip"), [OLD], "old"),
    ],
)
def test_a_value_that_applies_to_nobody(
    given: tuple[str, ...], endpoints: list[Endpoint], known: str
) -> None:
    with pytest.raises(UsageError, match=f"applies to no --endpoint; those that take it are {known}"):
        per_endpoint("prepare", given, endpoints)


PICTURE, TEXT = Input("x", "FP32", (3, 8, 8), "picture"), Input("t", "BYTES", (1,), "text")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--shape", "y=B,3"), "--shape y: no endpoint has an input of that name; leave it out"),
        (("--input", "y=text"), "--input y: no endpoint has an input of that name; leave it out"),
        (("--input", "x=texts"), "--input x=texts: give one of picture, text, ids, ones, zeros, random"),
        (("--input", "x"), "--input x: has no value; give it as sentences=text"),
        (("--prepare", "clip"), "--prepare: no endpoint takes the pixels of a picture; leave it out"),
    ],
)
def test_what_is_said_of_an_input_must_be_of_one(given: tuple[str, ...], said: str) -> None:
    chosen = options("--endpoint", "old=v2+http://gpu:1/m", *given)
    told = [replace(OLD, contract=Contract((TEXT,)))]
    with pytest.raises(UsageError) as caught:
        check_used(told, chosen)
    assert str(caught.value) == said


def test_a_preparation_is_of_use_to_one_endpoint() -> None:
    of_text = options("--endpoint", "old=v2+http://gpu:1/m", "--input", "t=text", "--shape", "t=B,1")
    check_used([replace(OLD, contract=Contract((TEXT,)))], of_text)
    chosen = options("--endpoint", "old=v2+http://gpu:1/m", "--prepare", "clip")
    check_used([replace(OLD, contract=Contract((one,))) for one in (TEXT, PICTURE)], chosen)


def servers(*endpoints: Endpoint) -> list[str]:
    return [one.server for one in with_servers(endpoints)]


def test_both_protocols_of_a_host_are_of_one_server() -> None:
    http = replace(OLD, name="http", protocol="http", address="gpu:8000")
    assert servers(OLD, http) == ["gpu", "gpu"]
    assert servers(OLD, replace(http, address="other:8000")) == ["gpu:8001", "other:8000"]
    assert servers(OLD, http, replace(http, model="clip")) == ["gpu", "gpu", "gpu"]
    assert servers(OLD, replace(http, backend="v2")) == ["gpu:8001", "gpu:8000"]


def test_others_are_told_apart_by_their_addresses() -> None:
    http = replace(OLD, name="http", protocol="http", address="gpu:8000")
    assert servers(OLD, replace(NEW, address="gpu:9001"), http) == ["gpu:8001", "gpu:9001", "gpu:8000"]
    assert servers(OLD, replace(NEW, model="clip")) == ["gpu:8001", "gpu:8001"]
    assert servers(replace(OLD, server="a"), replace(http, server="b")) == ["a", "b"]


def test_two_endpoints_of_one_name_are_refused() -> None:
    given = ("--endpoint", "a=triton+grpc://gpu:1/m", "--endpoint", "a=triton+grpc://gpu:2/m")
    with pytest.raises(UsageError, match="--endpoint a: names 2 endpoints; give each its own name"):
        own_endpoints(options(*given))


def test_whose_vectors_must_agree_is_the_models_name_or_what_options_say() -> None:
    given = ("--endpoint", "a=triton+grpc://gpu:1/m", "--endpoint", "b=v2+http://gpu:2/n", "--space", "b=m")
    assert [one.space for one in own_endpoints(options(*given))] == ["m", "m"]


def test_options_win_over_what_a_file_declares_of_a_model() -> None:
    file = {"prepare": "clip", "output": "a", "shape": {"x": "B,3", "y": "B,4"}}
    file["input"] = {"x": "text", "y": "ids"}
    own = replace(OLD, settings={ASKED: file}, contract=Contract(max_batch=4, tokenizer="t.json"))
    given = ("--endpoint", "old=v2+http://gpu:1/m")
    found = asked_of([own], options(*given))["old"]
    assert found == Asked(CLIP, "a", {"x": "B,3", "y": "B,4"}, 4, "t.json", {"x": "text", "y": "ids"})
    more = ("--prepare", "siglip", "--output", "b", "--shape", "x=B,9", "--input", "x=picture")
    found = asked_of([own], options(*given, *more))["old"]
    inputs = {"x": "picture", "y": "ids"}
    assert found == Asked(PRESETS["siglip"], "b", {"x": "B,9", "y": "B,4"}, 4, "t.json", inputs)


@pytest.mark.parametrize(
    ("texts", "images", "sends"), [("", "", ""), ("t", "", "text"), ("", "i", "picture"), ("t", "i", "")]
)
def test_what_is_sent_is_evidence(texts: str, images: str, sends: str) -> None:
    given = ("--endpoint", "old=v2+http://gpu:1/m", "--texts", texts, "--images", images)
    assert asked_of([OLD], options(*given))["old"].sends == sends


def test_what_was_found_of_a_model_leaves_what_was_declared() -> None:
    contract = Contract((Input("x", "FP16", (3, 8, 8), "picture", "NCHW"),), dimension=4)
    found = finished(replace(OLD, space="", settings={"kept": 1}), contract, ["decode"])
    assert (found.contract, found.payload) == (contract, "fp16")
    assert (found.codec, found.space) == ("v2-grpc", "siglip")
    assert found.settings == {"kept": 1, STEPS_KNOWN: ["decode"]}
    declared = finished(replace(OLD, space="towers", codec="mine.py", protocol="http"), contract, [])
    assert (declared.codec, declared.space) == ("mine.py", "towers")
