"""What is said of servers that others reach."""

import json

from server.embedded import up
from server.embedded.events import Events
from server.embedded.options import Wanted
from server.net import is_loopback


def test_servers_that_others_reach_are_warned_of(capsys):
    Events(False).ready({"model": "m", "weights": "w"}, {}, ["one", "two"])
    said = capsys.readouterr()
    assert said.err == "one\ntwo\n"
    assert "one" not in said.out
    Events(True).ready({"model": "m", "weights": "w"}, {}, ["one", "two"])
    said = capsys.readouterr()
    assert said.err == ""
    assert json.loads(said.out)["warnings"] == ["one", "two"]
    hosts = ["127.0.0.1", "localhost", "127.8.0.1", "0.0.0.0", "10.0.0.5", "gpu-host"]
    assert [is_loopback(host) for host in hosts] == [True, True, True, False, False, False]


def test_what_is_open_to_whom():
    triton, service = (text.format(host="0.0.0.0") for text in (up.OPEN, up.OPEN_SERVICE))
    everything, only_service, only_triton = (
        Wanted(names) for names in (("pytorch", "onnx"), ("pytorch",), ("onnx",))
    )
    token = {"INFERSWARM_TOKEN": "secret"}
    assert up.warnings("127.0.0.1", everything, {}) == []
    assert up.warnings("0.0.0.0", everything, {}) == [triton, service]
    assert up.warnings("0.0.0.0", only_service, {}) == [service]
    assert up.warnings("0.0.0.0", only_service, token) == []
    # A token guards the service alone.
    assert up.warnings("0.0.0.0", everything, token) == up.warnings("0.0.0.0", only_triton, {}) == [triton]
