"""Axes: what a plan tells of them, how cells are sorted by them, and where they stand in tables."""

import pytest

from reports.ledger.axes import AXES, UNSET, Axes, Topology, of_trait, planned_axes, ranks, recorded

WHOLE = Axes(
    arrivals="poisson", max_in_flight=9, channels="pool:4", client="library", topology=Topology(4, 2),
    link="lan", congestion="bbr", queue_delay_us=0, instances=2, variant="pool:4/4w2h", profile="hold:9",
    think="0.5", compression="gzip", shared_memory="system", batch_mix="1:0.5,4:0.5", replay="a day",
    together="a@c1+b@c1", split=0.25,
)  # fmt: skip


def test_a_plan_tells_of_them_part_by_part_and_is_read_again() -> None:
    told = recorded(WHOLE)
    assert list(told.items()) == [
        ("arrivals", "poisson"), ("max_in_flight", 9), ("channels", "pool:4"), ("client", "library"),
        ("workers", 4), ("hosts", 2), ("link", "lan"), ("congestion", "bbr"), ("queue_delay_us", 0),
        ("instances", 2), ("variant", "pool:4/4w2h"), ("profile", "hold:9"), ("think", "0.5"),
        ("compression", "gzip"), ("shared_memory", "system"), ("batch_mix", "1:0.5,4:0.5"),
        ("picture_mix", ""), ("replay", "a day"), ("together", "a@c1+b@c1"), ("split", 0.25),
    ]  # fmt: skip
    assert Axes(**planned_axes(told)) == WHOLE
    assert planned_axes(told)["queue_delay_us"] == 0, "which is told, and no default"


@pytest.mark.parametrize("entry", [{}, dict.fromkeys(recorded(WHOLE)), {"of a later program": 1}])
def test_what_an_older_plan_does_not_tell_is_unset(entry: dict[str, object]) -> None:
    assert Axes(**planned_axes(entry)) == Axes()
    assert planned_axes(entry) == UNSET
    assert UNSET.keys() == AXES.keys()


def test_cells_are_sorted_by_link_client_and_congestion_before_connections_and_servers() -> None:
    inner = [
        Axes(),
        Axes(queue_delay_us=0),
        Axes(queue_delay_us=500),
        Axes(instances=2),
        *(Axes(channels=channels) for channels in ("shared", "same-args", "pool:2", "pool:16")),
        *(Axes(channels=channels) for channels in ("per-user", "per-request", "of a later program")),
        *(Axes(topology=topology) for topology in (Topology(1), Topology(4), Topology(4, 2))),
    ]
    outer = [Axes(congestion="bbr"), Axes(client="library"), Axes(link="lan"), Axes(link="wan")]
    assert sorted([*outer[::-1], *inner[::-1]], key=ranks) == [*inner, *outer]


def test_what_must_be_alike_is_all_but_what_differs_and_its_name() -> None:
    one, other = (Axes(instances=number, variant=f"{number}-instances") for number in (1, 2))
    assert one.others("instances") == other.others("instances")
    assert one.others("topology") != other.others("topology")
    assert len(one.others()) == len(AXES) - 1


def test_where_they_stand_in_tables() -> None:
    later = "think compression shared_memory batch_mix picture_mix replay together"
    assert " ".join(of_trait("column")) == f"{later} split", (
        "older ones stand among the first columns, or nowhere"
    )
    assert " ".join(of_trait("gated")) == f"channels client workers hosts link congestion variant {later}"
    alike = "think compression shared_memory batch_mix picture_mix"
    assert " ".join(of_trait("condition")) == f"arrivals max_in_flight channels client {alike}"


@pytest.mark.parametrize(
    ("axis", "values", "names"),
    [
        ("link", ["", "lan"], ["none", "lan"]),
        ("queue_delay_us", [0, 500, 20_000], ["delay-0ms", "delay-0.5ms", "delay-20ms"]),
        ("instances", [1, 2], ["1-instance", "2-instances"]),
        ("topology", [Topology(4), Topology(4, 2)], ["4w", "4w2h"]),
        ("channels", ["pool:4"], ["pool:4"]),
        ("compression", ["", "gzip"], ["uncompressed", "gzip"]),
        ("shared_memory", ["", "system"], ["shm-none", "shm-system"]),
    ],
)
def test_a_variant_names_their_values(axis: str, values: list[object], names: list[str]) -> None:
    assert [AXES[axis].name(value) for value in values] == names
