"""Queue delay and instances of a real tritonserver set and put back, and servers that let nobody."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from swarm.errors import RunFailedError, UsageError
from swarm.plan.cell import Cell
from swarm.targets.embedded import EmbeddedServers
from swarm.targets.model_settings import POLL_S, ModelControl
from tests.swarm.fakes import FakeClock
from tests.swarm.wsgi import serving
from users.backends.asking import read_serving
from users.endpoint import Endpoint
from users.triton.model_control import NOBODY, config_of, load

pytestmark = pytest.mark.system

SERVICE = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:8002")
GATEWAY = Endpoint("gateway-http", "gateway", "http", "jpeg", "h:8040")
BATCHED: dict[str, Any] = {
    "name": "clip",
    "max_batch_size": 32,
    "dynamic_batching": {"max_queue_delay_microseconds": 10_000, "preserve_ordering": False},
    "instance_group": [{"name": "clip_0", "kind": "KIND_CPU", "count": 1, "gpus": []}],
}


def of(endpoint: Endpoint, delay_us: int | None = None, instances: int = 0) -> Cell:
    return Cell(endpoint, 1, 8, 10, 1.0, queue_delay_us=delay_us, instances=instances)


@pytest.fixture(scope="module")
def emulated() -> Iterator[dict[str, Endpoint]]:
    """A real tritonserver whose model only sleeps, by protocol."""
    servers = EmbeddedServers(lambda text: None)
    try:
        asked = ["--only", "emulated", "--emulate", "1+0.1", "--model-control"]
        ready = servers.start(asked)["endpoints"]["emulated"]
        yield {
            kind: Endpoint(f"emulated-{kind}", "emulated", kind, "fp32", ready[kind], "emulated")
            for kind in ("http", "grpc")
        }
    finally:
        servers.stop()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_real_model_is_set_and_put_back(emulated: dict[str, Endpoint], protocol: str) -> None:
    endpoint, said = emulated[protocol], list[str]()
    found, control = config_of(endpoint), ModelControl(said.append)
    cell = of(endpoint, 2_500, 2)
    control.check([cell])
    assert config_of(endpoint) == found, "to check changes nothing"
    assert control.apply(cell) == [endpoint]
    told = read_serving(endpoint)
    assert (told["instances"], told["batching_delay_ns"], told["max_batch"]) == (2, 2_500_000, 32)
    assert control.apply(cell) == [], "it is as it should be"
    assert control.apply(of(endpoint)) == [endpoint], "a cell that says nothing gets it as it was found"
    assert config_of(endpoint) == found
    control.apply(of(endpoint, 0))
    assert (read_serving(endpoint)["instances"], read_serving(endpoint)["batching_delay_ns"]) == (1, 0)
    control.restore()
    assert (config_of(endpoint), said) == (found, [])


def test_both_protocols_of_a_server_are_one_model(emulated: dict[str, Endpoint]) -> None:
    control = ModelControl(lambda text: None)
    assert control.apply(of(emulated["http"], 0)) == [emulated["http"]]
    assert control.apply(of(emulated["grpc"], 0)) == []
    assert control.apply(of(emulated["grpc"], 10_000)) == [emulated["grpc"]]
    control.restore()
    assert read_serving(emulated["http"])["batching_delay_ns"] == 10_000_000


def test_a_configuration_that_triton_refuses_fails_the_run(
    emulated: dict[str, Endpoint],
) -> None:
    control, endpoint = ModelControl(lambda text: None), emulated["http"]
    with pytest.raises(RunFailedError) as refused:
        control.apply(of(endpoint, -5))
    why = "failed to load 'emulated', failed to poll from model repository"
    assert str(refused.value) == f"its server cannot be configured for this cell: {why}"
    assert control.apply(of(endpoint)) == [endpoint], "what it has now is not known, so it is loaded"
    assert read_serving(endpoint)["batching_delay_ns"] == 10_000_000


def test_a_model_that_somebody_changed_meanwhile(
    emulated: dict[str, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    control, endpoint = ModelControl(lambda text: None), emulated["http"]
    found = config_of(endpoint)
    monkeypatch.setattr("users.triton.model_control.load", lambda *given: None)
    with pytest.raises(RunFailedError) as refused:
        control.apply(of(endpoint, 0, 4))
    has, asked = "1 instances, a queue delay of 10 ms", "4 instances, a queue delay of 0 ms"
    assert str(refused.value).endswith(f"emulated was loaded, but has {has}, not {asked}")
    monkeypatch.setattr("users.triton.model_control.load", load)
    control.restore()
    assert config_of(endpoint) == found


class Fake:
    """A Triton over HTTP with a model in memory: it loads what it is given, or says why not."""

    def __init__(self, config: Mapping[str, Any], refusal: str = "") -> None:
        self.configs, self.refusal = {"clip": config}, refusal
        self.loaded: list[str] = []
        self.unready = 0
        """How often a model is not ready after it was loaded."""

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        status, body = self.answer(environ["PATH_INFO"], environ["wsgi.input"].read() or b"{}")
        start(status, [("Content-Type", "application/json")])
        return [json.dumps(body).encode()]

    def answer(self, path: str, body: bytes) -> tuple[str, Any]:
        name = path.split("/")[-2]
        if path.endswith("/ready"):
            self.unready -= 1
            return ("503 Not yet" if self.unready >= 0 else "200 OK"), {}
        if path.endswith("/config"):
            return "200 OK", self.configs[name]
        if name == NOBODY:
            return "500 No", {"error": self.refusal or f"failed to load '{name}', failed to poll"}
        self.loaded.append(name)
        self.configs[name] = json.loads(json.loads(body)["parameters"]["config"])
        return "200 OK", {}


@contextmanager
def fake(config: Mapping[str, Any], refusal: str = "") -> Iterator[tuple[Fake, Endpoint]]:
    triton = Fake(config, refusal)
    with serving(triton) as address:
        yield triton, Endpoint("onnx-http", "onnx", "http", "fp32", address, "clip")


NOT_EXPLICIT = "explicit model load / unload is not allowed if polling is enabled"


def test_a_server_that_loads_nothing_is_refused_before_any_load() -> None:
    with fake(BATCHED, NOT_EXPLICIT) as (triton, endpoint), pytest.raises(UsageError) as refused:
        ModelControl(lambda text: None).check([of(SERVICE), of(endpoint), of(endpoint, 0)])
    assert str(refused.value) == (
        f"onnx-http {endpoint.address}: its model cannot be loaded again ({NOT_EXPLICIT}); start "
        "tritonserver with --model-control-mode=explicit --load-model=*, or do not change its settings: "
        "no --queue-delay-us, no --instances, no step6b, and of step5a only --cells '*/c1'"
    )
    assert triton.loaded == []


@pytest.mark.parametrize(
    ("lacking", "cell", "said"),
    [
        (
            "dynamic_batching",
            {"delay_us": 0},
            "has no dynamic batching, so --queue-delay-us cannot be applied",
        ),
        (
            "instance_group",
            {"instances": 2},
            "declares no instances, so --instances cannot be applied; leave",
        ),
    ],
)
def test_a_model_without_what_is_to_be_set_is_refused(lacking: str, cell: dict[str, int], said: str) -> None:
    config = {name: value for name, value in BATCHED.items() if name != lacking}
    with fake(config) as (_, endpoint), pytest.raises(UsageError) as refused:
        ModelControl(lambda text: None).check([of(endpoint, **cell)])
    assert str(refused.value).startswith(f"onnx-http {endpoint.address}: clip {said}")


def test_a_server_that_is_not_there_is_refused_in_a_sentence() -> None:
    gone = Endpoint("onnx-http", "onnx", "http", "fp32", "127.0.0.1:1", "clip")
    with pytest.raises(UsageError, match=r"the configuration of clip cannot be read .*cannot be varied$"):
        ModelControl(lambda text: None).check([of(gone, 0)])


def test_studies_that_set_nothing_ask_nothing() -> None:
    gone = Endpoint("onnx-http", "onnx", "http", "fp32", "127.0.0.1:1", "clip")
    control = ModelControl(lambda text: None)
    control.check([of(gone), of(SERVICE)])
    assert control.apply(of(gone)) == control.apply(of(SERVICE)) == control.apply(of(GATEWAY)) == []
    control.restore()


def test_of_an_ensemble_the_model_that_computes_is_loaded_and_a_gateway_gets_it_as_it_was() -> None:
    steps = {"step": [{"model_name": "decode_jpeg"}, {"model_name": "clip"}]}
    with fake(BATCHED) as (triton, endpoint):
        triton.configs["clip_jpeg"] = {"name": "clip_jpeg", "ensemble_scheduling": steps}
        jpeg = Endpoint("onnx-jpeg-http", "onnx", "http", "jpeg", endpoint.address, "clip_jpeg")
        control = ModelControl(lambda text: None)
        assert control.apply(of(jpeg, 0, 2)) == [jpeg]
        assert control.apply(of(endpoint, 0, 2)) == []
        assert [it.name for it in control.apply(of(GATEWAY))] == ["onnx-jpeg-http", "gateway-http"]
        assert control.apply(of(GATEWAY)) == []
        control.restore()
    assert triton.loaded == ["clip", "clip"]
    assert triton.configs["clip"] == BATCHED


def test_a_model_held_by_two_names_of_its_host_is_set_again_for_each() -> None:
    with fake(BATCHED) as (triton, one):
        other = replace(one, name="onnx-grpc", address=one.address.replace("127.0.0.1", "localhost"))
        assert one.host != other.host
        control = ModelControl(lambda text: None)
        control.check([of(one, 0), of(other, 500)])
        control.apply(of(one, 0))
        assert control.apply(of(other, 500)) == [other]
        assert control.apply(of(one, 0)) == [one], "it was the other's meanwhile"
        assert triton.configs["clip"]["dynamic_batching"]["max_queue_delay_microseconds"] == 0
        control.restore()
        assert triton.configs["clip"] == BATCHED


def test_two_servers_of_one_host_and_backend_are_two() -> None:
    with fake(BATCHED) as (old, one), fake(BATCHED) as (new, other):
        other = replace(other, name="new", server="new")
        control = ModelControl(lambda text: None)
        assert control.apply(of(one, 0)) == [one]
        assert control.apply(of(other, 0)) == [other], "it is another server's"
        assert control.apply(of(one, 500)) == [one]
        delays = [it.configs["clip"]["dynamic_batching"]["max_queue_delay_microseconds"] for it in (old, new)]
        assert delays == [500, 0]
        control.restore()
        assert old.configs["clip"] == new.configs["clip"] == BATCHED


def test_a_study_after_one_that_was_refused_finds_its_models_anew() -> None:
    with fake(BATCHED) as (triton, endpoint):
        control = ModelControl(lambda text: None)
        control.check([of(endpoint, 0)])
        theirs = {**BATCHED, "max_batch_size": 8}
        triton.configs["clip"] = theirs
        control.check([of(endpoint, 0)])
        control.apply(of(endpoint, 0))
        assert triton.configs["clip"]["max_batch_size"] == 8
        control.restore()
        assert triton.configs["clip"] == theirs


def test_a_model_is_waited_for_until_it_is_ready() -> None:
    clock = FakeClock()
    with fake(BATCHED) as (triton, endpoint):
        control = ModelControl(lambda text: None, clock, clock.sleep)
        triton.unready = 3
        assert control.apply(of(endpoint, 0)) == [endpoint]
        assert clock() == pytest.approx(3 * POLL_S)
        triton.unready = 10_000
        with pytest.raises(RunFailedError, match="clip is not ready 30 s after it was loaded"):
            control.apply(of(endpoint, 1))


def test_what_cannot_be_put_back_is_said() -> None:
    said: list[str] = []
    control = ModelControl(said.append)
    with fake(BATCHED) as (_, endpoint):
        control.apply(of(endpoint, 0))
    control.restore()
    (text,) = said
    assert text.startswith(f"inferswarm: clip at {endpoint.address} could not be restored to its settings (")
    assert text.endswith("); load it again, or restart its server")
