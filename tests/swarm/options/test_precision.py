"""The precisions that a study can ask for are those of its servers, which it may not import."""

from server.spec import PRECISIONS
from swarm.options import model


def test_a_study_asks_for_what_servers_have() -> None:
    assert model.PRECISIONS == PRECISIONS
