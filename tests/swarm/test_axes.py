"""Cells along the axes of channels, links and topologies."""

import pytest

from swarm.axes import Axes, Topology, channels_of, links_of, topologies_of
from swarm.cell import Cell
from swarm.errors import UsageError
from users.endpoint import Endpoint

CELL = Cell(Endpoint("a-grpc", "a", "grpc", "fp32", "h:1"), 1, 16, 10, 2.0)


def test_what_options_mean() -> None:
    assert channels_of("shared, pool:4,shared") == ("shared", "pool:4")
    assert links_of("none,wan-a100") == ("", "wan-a100")
    assert links_of("none") == ("",)
    assert topologies_of("") == (Topology(),)
    assert topologies_of("1,4,4@2") == (Topology(1), Topology(4), Topology(4, 2))
    assert [str(topology) for topology in topologies_of("4,4@2")] == ["4w", "4w2h"]


@pytest.mark.parametrize("text", ["0", "x", "2@4", "4@", "-1", "4@2@1"])
def test_topologies_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=f"--topology {text}: give worker processes"):
        topologies_of(text)


@pytest.mark.parametrize("text", ["pool", "pool:0", "one"])
def test_channels_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=f"--channels shared,{text}: give per-user, shared"):
        channels_of(f"shared,{text}")


def test_one_value_of_each_names_nothing() -> None:
    (cell,) = Axes(("shared",), ("lan",), (Topology(4, 2),), "library").cross([CELL])
    assert cell.name == "a-grpc/b1/c16"
    assert (cell.channels, cell.link, cell.workers, cell.hosts) == ("shared", "lan", 4, 2)
    assert cell.client == "library"


def test_several_values_cross_and_are_named() -> None:
    cells = Axes(("shared", "pool:4"), ("", "wan"), (Topology(1), Topology(4))).cross([CELL])
    assert [cell.variant for cell in cells] == [
        "shared/1w/none", "shared/4w/none", "shared/1w/wan", "shared/4w/wan",
        "pool:4/1w/none", "pool:4/4w/none", "pool:4/1w/wan", "pool:4/4w/wan",
    ]  # fmt: skip
    assert len({cell.name for cell in cells}) == 8


def test_what_a_study_has_set_itself_stays() -> None:
    own = Cell(CELL.endpoint, 1, 16, 10, 2.0, channels="shared", client="library", workers=1, variant="mine")
    cells = Axes(("per-user", "pool:4"), ("lan", "wan"), (Topology(4), Topology(2))).cross([own])
    assert [cell.name for cell in cells] == ["a-grpc/b1/c16/mine/lan", "a-grpc/b1/c16/mine/wan"]
    assert {(cell.channels, cell.client, cell.workers) for cell in cells} == {("shared", "library", 1)}
