"""Which endpoints are known, which a study asks, and which servers stand behind them."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from swarm.errors import UsageError
from swarm.targets.embedded import arguments
from swarm.targets.endpoints import (
    EVERY,
    FIVE,
    chosen,
    endpoints_from_options,
    endpoints_from_ready,
    flag_of,
    metrics_url,
    possible,
    servers_for,
    unasked,
)
from tests.swarm.output.test_results_folder import options
from users.backends.registry import backends
from users.endpoint import Endpoint

ONNX = {"http": "h:1", "grpc": "h:2", "model": "clip", "payloads": ["fp32", "jpeg"]}


def names(own=FIVE, asked="", skip_trt=False):
    given = [*(["--endpoints", asked] if asked else []), *(["--skip-trt"] if skip_trt else [])]
    return [kind.name for kind in chosen(own, options(*given))]


def test_names_say_backend_payload_and_protocol() -> None:
    known = [endpoint.name for backend in backends().values() for endpoint in backend.endpoints]
    assert len(set(known)) == len(known) == 44
    some = {"pytorch-http", "gateway-http", "onnx-json-http", "trt-grpc", "emulated-uint8-grpc"}
    assert some | {"torch-uint8-http", "inductor-grpc"} <= {*known}
    assert "onnx-json-grpc" not in known


def test_a_study_asks_its_own_and_what_stands_in_for_them() -> None:
    assert names() == [
        *("pytorch-http", "onnx-http", "onnx-grpc", "trt-http", "trt-grpc"),
        *("openvino-http", "openvino-grpc", "emulated-http", "emulated-grpc"),
    ]
    assert names(skip_trt=True) == [*names()[:3], "emulated-http", "emulated-grpc"]
    assert names(("onnx-json-http",)) == ["onnx-json-http", "emulated-json-http"]


def test_an_option_asks_others() -> None:
    found = ["gateway-http", "onnx-jpeg-grpc", "emulated-jpeg-grpc"]
    assert names(asked="onnx-jpeg-grpc, gateway-http") == found
    assert names(asked="openvino-*") == [one.name for one in backends()["openvino"].endpoints]
    assert names(asked="all") == names(own=EVERY)
    assert {"gateway-http", "onnx-uint8-grpc", "emulated-jpeg-grpc"} <= {*names(asked="all")}
    assert "onnx-json-http" not in names(asked="all")


def test_a_pattern_that_names_nothing() -> None:
    with pytest.raises(UsageError) as refused:
        names(asked="onnx-http,onx-http")
    said = str(refused.value)
    assert said.startswith("--endpoints onx-http: matches no endpoint; closest: onnx-http, ")
    assert "; there are pytorch-http, gateway-http, onnx-http, onnx-grpc, " in said
    assert said.endswith(" more, or all")
    assert " … " not in said
    with pytest.raises(UsageError, match="--skip-trt: leaves no endpoint"):
        names(asked="trt-*", skip_trt=True)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((), [*FIVE, "openvino-http", "openvino-grpc"]),
        (("--emulate", "5+0"), ["emulated-http", "emulated-grpc"]),
        (("--skip-trt", "--floor"), [*FIVE[:3], *(f"{name}-floor" for name in FIVE[:3])]),
        (("--onnx-grpc-url", "h:1"), ["onnx-grpc"]),
    ],
)
def test_before_servers_are_up_it_is_known_what_may_be(given: tuple[str, ...], found: list[str]) -> None:
    told = options(*given)
    assert {one.name for one in possible(chosen(FIVE, told), told)} == set(found)


OLD = Endpoint("old", "triton", "grpc", "fp32", "gpu:1", "siglip", codec="v2-grpc")
OWN = [OLD, replace(OLD, name="new", address="gpu:2")]


def beside_own(*given):
    """Which are asked where OWN are described."""
    return [one.name for one in chosen(FIVE, options(*given), OWN)]


def test_endpoints_of_ones_own_are_asked_alone_unless_others_are_named() -> None:
    assert beside_own() == ["old", "new"]
    assert beside_own("--onnx-grpc-url", "h:1") == [*names(), "old", "new"]
    assert beside_own("--endpoints", "new") == ["new"]
    assert beside_own("--endpoints", "onnx-grpc,n*") == ["onnx-grpc", "emulated-grpc", "new"]
    assert beside_own("--endpoints", "onnx-http") == ["onnx-http", "emulated-http"]
    with pytest.raises(UsageError, match="--endpoints x: matches no endpoint; there are old, new, pytorch-h"):
        beside_own("--endpoints", "x")


def test_endpoints_of_ones_own_have_an_address_already() -> None:
    asked = options("--onnx-grpc-url", "h:1")
    made = endpoints_from_options(asked, chosen(FIVE, asked, OWN))
    assert (made[0].name, made[0].address, made[1:]) == ("onnx-grpc", "h:1", OWN)
    assert [flag_of(one) for one in made] == ["--onnx-grpc-url", "--endpoint old", "--endpoint new"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--emulate a100 --endpoints pytorch-http", r"can be emulated; choose from onnx-\*, or give"),
        ("--endpoints emulated-http", "these need an emulated model; give --emulate, e.g. a100"),
    ],
)
def test_endpoints_that_servers_of_our_own_do_not_have(given: str, said: str) -> None:
    asked = options(*given.split())
    with pytest.raises(UsageError, match=f"--endpoints: .*{said}"):
        arguments(asked, chosen(FIVE, asked))


def by_urls(*given: str) -> tuple[list[str], str]:
    asked = options(*given)
    made = endpoints_from_options(asked, chosen(FIVE, asked))
    return [endpoint.name for endpoint in made], unasked(asked, made)


def test_what_is_named_by_endpoints_needs_a_url() -> None:
    grpc, gateway = ("--onnx-grpc-url", "h:1"), ("--gateway-url", "h:3")
    with pytest.raises(UsageError, match="--endpoints gateway-http: has no URL; give --gateway-url"):
        by_urls(*grpc, "--endpoints", "onnx-grpc,gateway-http")
    assert by_urls(*grpc, "--endpoints", "all")[0] == ["onnx-grpc", "onnx-jpeg-grpc", "onnx-uint8-grpc"]
    assert by_urls("--emulated-grpc-url", "h:1", "--endpoints", "onnx-grpc")[0] == ["emulated-grpc"]
    both = by_urls(*grpc, *gateway, "--endpoints", "onnx-grpc,gateway-http")
    assert both == (["gateway-http", "onnx-grpc"], "")


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("h:2/m?name[]=a", "http://h:2/m?name[]=a"),
        ("https://h:2", "https://h:2/metrics"),
        ("http://h:2/m#top", ""),
        ("ftp://h:2/m", ""),
    ],
)
def test_the_url_of_a_page_is_whole_or_refused(url: str, whole: str) -> None:
    with nullcontext() if whole else pytest.raises(UsageError, match="give host:port"):
        assert metrics_url("--onnx-metrics-url", url) == whole


def test_a_url_that_no_endpoint_is_asked_of_is_told() -> None:
    grpc, metrics = ("--onnx-grpc-url", "h:1"), ("--onnx-metrics-url", "h:2")
    names, told = by_urls(*grpc, *metrics, "--gateway-url", "h:3", "--trt-metrics-url", "h:4")
    assert names == ["onnx-grpc"]
    assert told.startswith("--gateway-url, --trt-metrics-url: this study uses no endpoint there")
    assert by_urls(*grpc, "--trt-http-url", "h:4", "--skip-trt") == (["onnx-grpc"], "")


@pytest.mark.parametrize(
    ("asked", "emulated", "servers", "payloads"),
    [
        ("", False, ["pytorch", "onnx", "compiled"], ["fp32"]),
        ("", True, ["emulated"], ["fp32"]),
        ("onnx-jpeg-grpc,gateway-http", False, ["gateway", "onnx"], ["fp32", "jpeg"]),
        ("onnx-jpeg-grpc,onnx-grpc", True, ["emulated"], ["fp32", "jpeg"]),
        ("pytorch-http", True, [], ["fp32"]),
    ],
)
def test_servers_behind_them(asked: str, emulated: bool, servers: list[str], payloads: list[str]) -> None:
    made = options("--endpoints", asked) if asked else options()
    assert servers_for(chosen(FIVE, made), emulated) == (servers, payloads)


def test_endpoints_of_embedded_servers() -> None:
    ready = {"endpoints": {"onnx": ONNX, "gateway": {"url": "http://h:3"}}}
    made = endpoints_from_ready(
        ready, chosen(FIVE, options("--endpoints", "gateway-http,onnx-http,onnx-j*,trt-grpc"))
    )
    assert [(e.name, e.protocol, e.payload, e.address, e.model) for e in made] == [
        ("gateway-http", "http", "jpeg", "h:3", ""),
        ("onnx-http", "http", "fp32", "h:1", "clip"),
        ("onnx-json-http", "http", "json", "h:1", "clip"),
        ("onnx-jpeg-http", "http", "jpeg", "h:1", "clip_jpeg"),
        ("onnx-jpeg-grpc", "grpc", "jpeg", "h:2", "clip_jpeg"),
    ]
