"""SIGTERM: what was taken is answered, nothing new is, and the exit code is 0."""

import http.client
import json
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from server.embedded.fleet import STOP_S
from server.embedded.plans import DRAIN_S, Hosting, pytorch_plan
from server.settings import Settings
from server.spec import ROOT, ModelSpec
from tests.processes import is_listening
from tests.server.conftest import body_of
from tests.server.running import live

pytestmark = pytest.mark.system

USERS = 30


def all_have_come(service, waiting):
    """Whether each is answered, or taken and not yet answered."""
    # In this order: one that is answered meanwhile is counted in neither, and not in both.
    answered, text = sum(answer.done() for answer in waiting), service.request("GET", "/metrics")[2].decode()
    return answered + float(text.partition("\ninferswarm_in_flight ")[2].split()[0]) == len(waiting)


def ended(service, body):
    try:
        return service.request("POST", "/embed", body)
    except (ConnectionError, http.client.HTTPException) as error:
        return type(error).__name__, {}, b""


def test_everything_that_was_taken_is_answered(until):
    body = body_of([(200, 100, 50)])
    with live(seconds=0.15) as service, ThreadPoolExecutor(USERS) as pool:
        waiting = [pool.submit(ended, service, body) for _ in range(USERS)]
        until(lambda: all_have_come(service, waiting))
        service.process.terminate()
        until(lambda: not is_listening(service.port))
        assert not all(answer.done() for answer in waiting)
        assert Counter(answer.result()[0] for answer in waiting) == {200: USERS}
        assert len({answer.result()[2] for answer in waiting}) == 1
        assert service.stop() == (0, "")


def test_what_is_not_answered_in_time_is_told_so(until):
    body = body_of([(200, 100, 50)])
    with live(seconds=0.5, MAX_DRAIN_S=1) as service, ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(ended, service, body) for _ in range(12)]
        until(lambda: all_have_come(service, waiting))
        code, said = service.stop()
        found = Counter(answer.result()[0] for answer in waiting)
        told = {answer.result()[2] for answer in waiting if answer.result()[0] == 503}
    assert code == 0
    assert set(found) == {200, 503}
    assert [json.loads(answer) for answer in told] == [
        {"detail": "the service was stopped before the answer was ready: send the request again"}
    ]
    # One line of uvicorn, and no traceback.
    assert len(said.splitlines()) == 1
    assert "timeout graceful shutdown exceeded" in said


def test_whoever_stops_the_service_waits_longer_than_it_does():
    drain_s = Settings().max_drain_s
    compose = yaml.safe_load((ROOT / "server" / "compose.yaml").read_text())
    for service in compose["services"].values():
        assert int(service["stop_grace_period"].removesuffix("s")) > drain_s + 5
    deployment = yaml.safe_load((ROOT / "server" / "k8s" / "base" / "deployment.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    before_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= before_s + drain_s + 10


def test_an_embedded_service_is_done_before_its_supervisor_loses_patience(monkeypatch):
    said = {"MAX_DRAIN_S": "600", "TLS_CERT": "cert.pem", "TLS_KEY": "key.pem", "TOKEN": "s3cret"}
    for name, value in (said | {"MAX_QUEUE": "7"}).items():
        monkeypatch.setenv(f"INFERSWARM_{name}", value)
    plan = pytorch_plan(ModelSpec(), Hosting("127.0.0.1", 0))
    settings = Settings.from_env(plan.environ)
    assert settings.max_drain_s == DRAIN_S < STOP_S
    # Its address is http, and it takes what else the environment says.
    assert (settings.tls_cert, settings.tls_key) == ("", "")
    assert (settings.token, settings.max_queue) == ("s3cret", 7)
    assert "s3cret" not in " ".join(plan.command)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_service_ends_at_once(number):
    with live() as service:
        service.process.send_signal(number)
        _, said = service.process.communicate(timeout=10)
        assert (service.process.returncode, said) == (0, "")
