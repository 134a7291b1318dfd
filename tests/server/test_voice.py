"""What a person hears and a program does not."""

from server import up
from server.net import is_loopback
from server.voice import Voice


def test_people_are_warned_of_servers_that_others_reach(capsys):
    Voice(as_json=False).ready({"model": "m", "weights": "w"}, {}, up.OPEN.format(host="0.0.0.0"))
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Whoever reaches tritonserver on 0.0.0.0 can load models into it, and a model may be code.",
        "Ctrl-C stops them.",
    ]
    hosts = ["127.0.0.1", "localhost", "127.8.0.1", "0.0.0.0", "10.0.0.5", "gpu-host"]
    assert [is_loopback(host) for host in hosts] == [True, True, True, False, False, False]
