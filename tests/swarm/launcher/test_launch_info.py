"""What the launcher tells the master, and what cannot be run on it."""

import os

import pytest

from reports.ledger.axes import Topology
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo, as_typed, relocated
from swarm.plan.cell import Cell
from users.endpoint import Endpoint

CELL = Cell(Endpoint("a-grpc", "a", "grpc", "fp32", "h:1"), 1, 16, 10, 2.0)
LAUNCH = LaunchInfo(
    command=[".venv/bin/inferswarm", "run"],
    workers=4,
    hosts=[{"name": "h1"}, {"name": "h2"}],
    links=[{"name": "wan"}, {"name": "lan"}],
    addresses={
        "h1": {"wan": {"cubic": "198.18.0.1", "bbr": "198.18.0.3"}, "lan": {"cubic": "198.18.0.5"}},
        "h2": {"wan": {"cubic": "198.18.0.9", "bbr": "198.18.0.11"}, "lan": {"cubic": "198.18.0.13"}},
    },
)


def cell(**axes: object) -> Cell:
    return Cell(**{**vars(CELL), **axes})  # type: ignore[arg-type]


def test_it_travels_in_the_environment() -> None:
    assert LaunchInfo.of(LAUNCH.to_environment()) == LAUNCH
    assert LaunchInfo.of({}) == LaunchInfo()


def test_addresses_by_link_and_congestion_control() -> None:
    assert LAUNCH.addresses_of(cell()) == {}
    assert LAUNCH.addresses_of(cell(link="wan")) == {"h1": "198.18.0.1", "h2": "198.18.0.9"}
    bbr = cell(link="wan", congestion="bbr")
    assert LAUNCH.addresses_of(bbr) == {"h1": "198.18.0.3", "h2": "198.18.0.11"}
    assert LAUNCH.ways(("", "lan")) == [{}, {"h1": "198.18.0.5", "h2": "198.18.0.13"}]


def test_what_there_is_can_be_run() -> None:
    LAUNCH.check([cell(), cell(link="wan", congestion="bbr", topology=Topology(4, 2))], 4)
    LaunchInfo().check([cell(topology=Topology(4))], 0)


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        ({"link": "moon"}, "--link moon: the links made are wan, lan; run `inferswarm run"),
        ({"topology": Topology(8)}, "a-grpc/b1/c16 asks for 8 workers and 4 will run: use `inferswarm"),
        ({"topology": Topology(0, 3)}, "a-grpc/b1/c16 asks for 3 hosts and 2 are available: give --hosts 3"),
    ],
)  # fmt: skip
def test_what_there_is_not(axes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        LAUNCH.check([cell(**axes)], 4)
    assert str(caught.value).startswith(sentence)


def test_congestion_controls_that_a_link_offers() -> None:
    assert LAUNCH.offers(cell(link="wan", congestion="bbr"))
    assert not LAUNCH.offers(cell(link="lan", congestion="bbr"))
    assert not LAUNCH.offers(cell(congestion="bbr"))
    assert not LaunchInfo().offers(cell(congestion="bbr"))
    assert LaunchInfo().offers(cell())


def test_without_a_launcher_there_are_no_links() -> None:
    with pytest.raises(UsageError, match="--link wan: no link exists; run `inferswarm run"):
        LaunchInfo().check_links(["", "wan"])


def test_servers_in_a_namespace_are_where_the_launcher_reaches_them() -> None:
    ready = {"endpoints": {"emulated": {"http": "127.0.0.1:8030", "metrics": "http://127.0.0.1:8032/m"}}}
    there = {"http": "198.19.0.2:8030", "metrics": "http://198.19.0.2:8032/m"}
    assert relocated(ready, "198.19.0.2") == {"endpoints": {"emulated": there}}
    assert relocated(ready, "") is ready


@pytest.mark.parametrize(
    ("program", "python", "typed"),
    [
        (".venv/bin/locust", ".venv/bin/python", [".venv/bin/locust"]),
        (".venv/bin/inferswarm", ".venv/bin/python", [".venv/bin/inferswarm"]),
        ("../venv/bin/locust", "../venv/bin/python", ["locust"]),
        (
            ".venv/lib/python3.12/site-packages/locust/__main__.py",
            ".venv/bin/python",
            [".venv/bin/python", "-m", "locust"],
        ),
        ("../venv/lib/locust/__main__.py", "../venv/bin/python3", ["python3", "-m", "locust"]),
    ],
)
def test_the_command_of_a_study_can_be_typed_again(program: str, python: str, typed: list[str]) -> None:
    """Where Python runs a package, the program's name is that of the package's file."""
    argv = [os.path.abspath(program), "-f", "locustfiles/step7.py"]
    assert as_typed(argv, os.path.abspath(python)) == [*typed, "-f", "locustfiles/step7.py"]
