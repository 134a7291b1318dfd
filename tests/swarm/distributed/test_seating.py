"""Which workers carry a cell."""

import pytest

from swarm.distributed.workers import seated
from swarm.errors import RunFailedError

HOSTS = {"h1": ["a", "b", "c"], "h2": ["d"], "h3": ["e", "f"]}


@pytest.mark.parametrize(
    ("workers", "hosts", "found"),
    [
        (0, 0, ["a", "d", "e", "b", "f", "c"]),
        (1, 0, ["a"]),
        (4, 0, ["a", "d", "e", "b"]),
        (3, 2, ["a", "e", "b"]),
        (0, 1, ["a", "b", "c"]),
    ],
)
def test_hosts_give_one_in_their_turn(workers: int, hosts: int, found: list[str]) -> None:
    assert seated(HOSTS, workers, hosts) == found


def test_too_few() -> None:
    with pytest.raises(RunFailedError, match="it asks for 7 workers and 6 are there"):
        seated(HOSTS, 7, 0)
    with pytest.raises(RunFailedError, match="it asks for 6 workers on 2 hosts and 5 are there"):
        seated(HOSTS, 6, 2)
    with pytest.raises(RunFailedError, match="it asks for 4 hosts and 3 are available"):
        seated(HOSTS, 0, 4)
