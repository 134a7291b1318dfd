"""What the service says of its model while it loads, once it is loaded, and when it cannot be."""

import asyncio
import json
import socket

import pytest

from server.errors import SetUpError
from server.hardware.machine import machine_id
from server.service import command
from server.settings import Settings
from tests.processes import free_port

BROKEN = "the model could not be loaded: no such file: model.pt"


def test_ready_only_once_the_model_is_loaded(embedder, serving, until):
    embedder.load_gate.clear()
    with serving(embedder, ready=False) as client:
        assert client.request("GET", "/healthz")[0] == 200
        status, _, body = client.request("GET", "/readyz")
        assert (status, json.loads(body)["status"]) == (503, "loading")
        status, headers, reply = client.embed([(1, 1, 1)])
        assert (status, headers["Retry-After"]) == (503, "1")
        assert reply["detail"] == "the model is still loading: try again when GET /readyz answers 200"
        embedder.load_gate.set()
        until(lambda: client.request("GET", "/readyz")[0] == 200)
        status = json.loads(client.request("GET", "/readyz")[2])
        assert status.pop("load_s") > 0
        told = {"status": "ready", "model": "colour", "weights": "none", "weights_sha256": "0", "dim": 3}
        told |= {"device": "cpu", "machine": machine_id(), "instances": 1, "precision": "fp32"}
        assert status == told


def test_a_model_that_cannot_be_loaded_is_no_longer_loading(embedder, serving, until):
    def load():
        raise OSError("no such file:\n  model.pt")

    embedder.load = load
    with serving(embedder, ready=False) as client:
        until(lambda: json.loads(client.request("GET", "/readyz")[2])["status"] != "loading")
        status, _, body = client.request("GET", "/readyz")
        assert (status, json.loads(body)["status"], json.loads(body)["detail"]) == (503, "failed", BROKEN)
        status, _, reply = client.embed([(1, 1, 1)])
        assert (status, reply) == (503, {"detail": BROKEN})


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError("no such file: model.pt"), BROKEN),
        (SetUpError("open_clip has no model 'x'."), "open_clip has no model 'x'."),
    ],
)
def test_the_command_ends_when_its_model_cannot_be_loaded(error, sentence, embedder, monkeypatch, capsys):
    def load():
        raise error

    embedder.load = load
    monkeypatch.setattr("server.models.clip.ClipEmbedder", lambda settings: embedder)
    monkeypatch.setenv("INFERSWARM_PORT", str(free_port()))
    assert command.main([]) == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_a_taken_port_is_found_before_the_model_is_loaded(embedder, monkeypatch):
    monkeypatch.setattr("server.models.clip.ClipEmbedder", lambda settings: pytest.fail("loaded"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("INFERSWARM_PORT", str(port))
        with pytest.raises(SetUpError) as caught:
            command.main([])
    assert str(caught.value) == (
        f"the service cannot listen on 127.0.0.1:{port} (address already in use): "
        "set INFERSWARM_PORT to a free port, and INFERSWARM_HOST to an address of this machine."
    )


def test_answers_are_not_held_back_by_nagles_algorithm():
    async def accepted_socket() -> int:
        delays = asyncio.get_running_loop().create_future()

        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held = writer.get_extra_info("socket")
            delays.set_result(held.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with command.bind(Settings(port=0)) as listener:
            async with await asyncio.start_server(accept, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                writer.close()
                return await delays

    assert asyncio.run(accepted_socket()) == 1


def test_a_port_taken_while_the_model_is_imported_is_found_too(embedder, monkeypatch):
    monkeypatch.setattr("server.models.clip.ClipEmbedder", lambda settings: embedder)
    settings = Settings(port=free_port())
    with command.bind(settings) as late, command.bind(settings) as early:
        early.listen()
        with pytest.raises(SetUpError, match=r"address already in use.*INFERSWARM_PORT"):
            command.serve(settings, late)
