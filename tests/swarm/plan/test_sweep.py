"""Cells along the axes of channels, links, topologies and server settings."""

from dataclasses import replace
from typing import Any

import pytest

from swarm.options.model import AXES
from swarm.plan.cell import Cell
from swarm.plan.sweep import Topology, Varied, cross
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.transport.connections import GIVE

CELL = Cell(Endpoint("a-grpc", "pytorch", "grpc", "fp32", "h:1"), 1, 16, 10, 2.0)


def values(name: str, text: str) -> tuple[Any, ...]:
    return AXES[name].values(text)


def crossed(cell: Cell, **texts: str) -> list[Cell]:
    """As options with these texts cross it, in the order in which they are declared."""
    return cross([cell], [Varied(name, one, one.values(texts.get(name, ""))) for name, one in AXES.items()])


def test_what_options_mean() -> None:
    assert values("channels", "shared, pool:4,shared") == ("shared", "pool:4")
    assert values("link", "none,wan-a100") == ("", "wan-a100")
    assert values("link", "none") == values("link", ",") == ("",)
    assert values("topology", "") == values("topology", " ") == ()
    assert values("topology", "1,4,4@2") == (Topology(1), Topology(4), Topology(4, 2))
    assert [str(topology) for topology in values("topology", "4,4@2")] == ["4w", "4w2h"]
    assert values("queue_delay_us", " 0, 500,10000,500") == (0, 500, 10_000)
    assert values("instances", "1,2,4") == (1, 2, 4)


TOPOLOGIES = "give worker processes, or WORKERS@HOSTS with a worker for each host, e.g. 1,4,4@2"
DELAYS = "give whole microseconds up to 10,000,000, e.g. 0,1000,10000"
INSTANCES = "give whole numbers from 1 to 64, e.g. 1,2,4"


@pytest.mark.parametrize(
    ("name", "texts", "fix"),
    [
        ("topology", ("0", "x", "2@4", "4@", "-1", "4@2@1", ",", "9" * 5000), TOPOLOGIES),
        ("channels", ("pool", "pool:0", "one", "shared,one", ","), GIVE),
        ("client", ("fast", "prepared,fast"), "give one of prepared, library"),
        ("queue_delay_us", ("-1", "1.5", "x", "0;1", "10000001", "٣", "9" * 5000), DELAYS),
        ("instances", ("0", "65", "two", "1;2"), INSTANCES),
        ("compression", ("br", "gzip;deflate", "GZIP", ","), "give none, gzip, deflate, or several of them"),
        ("shared_memory", ("cuda", "yes", ","), "give none, system, or both"),
    ],
)
def test_values_that_make_no_sense(name: str, texts: tuple[str, ...], fix: str) -> None:
    for text in texts:
        with pytest.raises(ValueError) as refused:
            values(name, text)
        assert str(refused.value) == fix


def test_one_value_of_each_names_nothing() -> None:
    (cell,) = crossed(CELL, channels="shared", link="lan", topology="4@2", client="library")
    assert cell.name == "a-grpc/b1/c16"
    assert (cell.channels, cell.link, cell.topology) == ("shared", "lan", Topology(4, 2))
    assert cell.client == "library"


def test_several_values_cross_and_are_named() -> None:
    cells = crossed(CELL, channels="shared,pool:4", link="none,wan", topology="1,4")
    assert [cell.variant for cell in cells] == [
        "shared/1w/none", "shared/1w/wan", "shared/4w/none", "shared/4w/wan",
        "pool:4/1w/none", "pool:4/1w/wan", "pool:4/4w/none", "pool:4/4w/wan",
    ]  # fmt: skip
    assert len({cell.name for cell in cells}) == 8
    assert [(cell.variant, cell.client) for cell in crossed(CELL, client="prepared,library")] == [
        *(("prepared", "prepared"), ("library", "library")),
    ]


def test_what_a_study_has_set_itself_stays() -> None:
    own = of(CELL.endpoint, channels="shared", client="library", topology=Topology(1), variant="mine")
    cells = crossed(own, channels="per-user,pool:4", link="lan,wan", topology="4,2")
    assert [cell.name for cell in cells] == ["a-grpc/b1/c8/mine/lan", "a-grpc/b1/c8/mine/wan"]
    assert {(cell.channels, cell.client, cell.topology) for cell in cells} == {
        ("shared", "library", Topology(1))
    }


TRITON = Endpoint("onnx-http", "onnx", "http", "fp32", "h:8010", "clip")
SERVICE = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:8002")


def of(endpoint: Endpoint, **more: Any) -> Cell:
    return Cell(endpoint, 1, 8, 10, 2.0, **more)


def test_server_settings_cross_and_are_named_where_there_are_several() -> None:
    several = crossed(of(TRITON), queue_delay_us="0,500,10000", instances="1,2")
    assert [cell.variant for cell in several] == [
        *("delay-0ms/1-instance", "delay-0ms/2-instances", "delay-0.5ms/1-instance"),
        *("delay-0.5ms/2-instances", "delay-10ms/1-instance", "delay-10ms/2-instances"),
    ]
    assert [(cell.queue_delay_us, cell.instances) for cell in several[:3]] == [(0, 1), (0, 2), (500, 1)]
    (single,) = crossed(of(TRITON), queue_delay_us="500", instances="2")
    assert (single.variant, single.queue_delay_us, single.instances) == ("", 500, 2)
    (neither,) = crossed(of(TRITON))
    assert (neither.queue_delay_us, neither.instances) == (None, 0)


def test_what_has_no_model_of_tritons_is_run_once() -> None:
    both = (of(SERVICE), of(TRITON.floor()))
    cells = [cell for one in both for cell in crossed(one, channels="shared,pool:4", queue_delay_us="0,500")]
    assert [cell.name for cell in cells] == [
        *("pytorch-http/b1/c8/shared", "pytorch-http/b1/c8/pool:4"),
        *("onnx-http-floor/b1/c8/shared", "onnx-http-floor/b1/c8/pool:4"),
    ]
    assert {cell.queue_delay_us for cell in cells} == {None}


def test_a_studys_own_instances_stay() -> None:
    own = of(TRITON, instances=4, variant="4-instances")
    cells = crossed(own, queue_delay_us="0,500", instances="1,2")
    assert [cell.name for cell in cells] == [
        "onnx-http/b1/c8/4-instances/delay-0ms",
        "onnx-http/b1/c8/4-instances/delay-0.5ms",
    ]
    assert {cell.instances for cell in cells} == {4}


def test_what_takes_compressed_requests_or_shares_memory_is_crossed_with_it() -> None:
    described = replace(SERVICE, backend="service", codec="declared-http", settings={"compression": ["gzip"]})
    asked = {"compression": "none,gzip,deflate", "shared_memory": "none,system"}
    tensors, files = (replace(TRITON, name=payload, payload=payload) for payload in ("fp32", "jpeg"))
    for endpoint, variants in {
        SERVICE: [""],
        described: ["uncompressed", "gzip"],
        tensors: ["uncompressed/shm-none", "uncompressed/shm-system", "gzip", "deflate"],
        files: ["uncompressed", "gzip", "deflate"],
        replace(tensors, payload="json"): ["uncompressed", "gzip", "deflate"],
        CELL.endpoint: ["uncompressed", "gzip", "deflate"],
    }.items():
        assert [cell.variant for cell in crossed(of(endpoint), **asked)] == variants
    for more in ({"client": "library"}, {"replay": "trace.csv"}, {"picture_mix": "224:0.5,512:0.5"}):
        assert [cell.shared_memory for cell in crossed(of(tensors, **more), **asked)] == ["", "", ""]
    (only,) = crossed(of(described), compression="deflate")
    assert (only.compression, only.variant) == ("", "")


SHARES = (
    "give the shares of all requests, which add up to 1, e.g. 224:0.7,1024:0.3, or small:0.7,large:0.3 with"
)


@pytest.mark.parametrize(
    ("mix", "fix"),
    [
        *(
            (mix, f"{SHARES} --images")
            for mix in ("224", "224:x", ":1", "224:0,1024:1", "224:nan,1024:1", ",")
        ),
        ("224:0.5,1024:0.4", f"{SHARES} --images; these add up to 0.9"),
        ("224:0.5,224:0.5", "name each once"),
        ("224:0.9995,1024:0.0005", "give shares of which none is below 0.001"),
    ],
)
def test_mixes_of_pictures_that_make_no_sense(mix: str, fix: str) -> None:
    with pytest.raises(ValueError) as refused:
        values("picture_mix", mix)
    assert str(refused.value) == fix


def test_a_mix_is_one_value_of_endpoints_that_send_pictures() -> None:
    mix = "small:0.7,large:0.3"
    assert values("picture_mix", mix) == (mix,)
    captions = Contract((Input("text", "BYTES", (1,), "text"),))
    cells = [
        cell
        for contract in (CELL.endpoint.contract, captions)
        for cell in crossed(of(replace(CELL.endpoint, contract=contract)), picture_mix=mix)
    ]
    assert [(cell.name, cell.picture_mix) for cell in cells] == [("a-grpc/b1/c8", mix), ("a-grpc/b1/c8", "")]
