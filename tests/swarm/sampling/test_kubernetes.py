"""The Kubernetes API over real HTTP: what is read each second, and what is refused before any load."""

from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from swarm.errors import UsageError
from swarm.options.model import Options
from swarm.sampling import sampler as module
from swarm.sampling.kubernetes import NO_COUNTERS, PROXY, cluster_of, pods_path
from swarm.sampling.sampler import Sampler, open_sources
from tests.fake_kubernetes import Cluster
from tests.swarm.options.test_parse import options
from tests.swarm.wsgi import serving
from users.endpoint import Endpoint

pytestmark = pytest.mark.system

SERVICE = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "127.0.0.1:1")


class Api:
    """The stand-in's objects, served here; `seen` is how many requests its service has had."""

    def __init__(self) -> None:
        self.seen = 0
        self.cluster = Cluster({50: 4}, 0, lambda: self.seen)
        self.status = ""
        self.url = ""

    def answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        if self.status and "deployments" in environ["PATH_INFO"]:
            start(self.status, [])
            return [b'{"kind": "Status"}']
        return self.cluster(environ, start)


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    with serving(made.answer) as address:
        made.url = f"http://{address}"
        yield made


def named(url: str, *more: str) -> Options:
    return options("--pytorch-url", "gpu:8002", "--kube-url", url, *more)


def refused(made: Options) -> str:
    with pytest.raises(UsageError) as caught:
        cluster_of(made, lambda text: None)
    return str(caught.value)


def test_a_second_of_a_service_that_is_being_scaled(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_nvml", lambda: None)
    said: list[str] = []
    cluster = cluster_of(named(api.url), said.append)
    written: list[dict[str, Any]] = []
    sampler = Sampler(written.append, lambda endpoint: open_sources(endpoint, {}, cluster=cluster))
    api.seen = 30
    sampler.begin("pytorch-http/b1/r10/profile", 1, SERVICE)
    gevent.sleep(1.2)
    api.seen = 60
    gevent.sleep(1.0)
    sampler.end()
    first, *_, last = written
    expected = {"replicas": 2, "desired_replicas": 2, "ready_replicas": 2, "restarts": 0, "pending_pods": 0}
    expected |= {"cpu_pct_of_request": 90, "hpa_target_cpu_pct": 60, "cpu_millicores": 450, "hpa_max": 6}
    assert {name: first[name] for name in expected} == expected
    assert (last["desired_replicas"], last["ready_replicas"], last["cpu_pct_of_request"]) == (4, 4, 30)
    assert first["missing"] == [f"server: other: {NO_COUNTERS}"]
    assert said == []


def test_without_an_autoscaler_replicas_are_recorded_all_the_same(api: Api) -> None:
    api.cluster.autoscaler = False
    said: list[str] = []
    cluster = cluster_of(named(api.url), said.append)
    assert said == ["--kube-deployment inferswarm-server: has no autoscaler; only its replicas are recorded"]
    assert cluster is not None
    with cluster.reads(1) as reads:
        assert set(reads) == {"deployment", "pods"}
        assert reads["deployment"]()["ready_replicas"] == 2


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:6443", "http://me:secret@h:8001", "http://h:8001/?token=x", "h", "ftp://h:1"]
)
def test_addresses_that_kubectl_proxy_does_not_have(url: str) -> None:
    said = refused(named(url))
    assert said.startswith("--kube-url")
    assert said.endswith(PROXY)
    assert "secret" not in said


def test_nobody_there() -> None:
    said = refused(named("http://127.0.0.1:1"))
    assert said == f"--kube-url http://127.0.0.1:1: cannot be reached (nothing answers there); {PROXY}"


def test_what_the_api_does_not_have(api: Api) -> None:
    said = refused(named(api.url, "--kube-deployment", "other"))
    assert said.endswith("namespace inferswarm-server has no such deployment (it has inferswarm-server)")
    said = refused(named(api.url, "--kube-namespace", "other"))
    assert said.endswith("other: there is no such namespace; see `kubectl get namespaces`")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("403 Forbidden", "`kubectl proxy` may not read deployments in inferswarm-server"),
        ("200 OK", "answers, but not as a Kubernetes API"),
    ],
)
def test_an_api_that_does_not_tell(api: Api, status: str, words: str) -> None:
    api.status = status
    assert words in refused(named(api.url))


def test_pods_are_chosen_by_labels_alone() -> None:
    labels = {"app": "x", "app.kubernetes.io/name": "y"}
    path = pods_path("/api/v1/namespaces/n", {"spec": {"selector": {"matchLabels": labels}}})
    assert path == "/api/v1/namespaces/n/pods?labelSelector=app%3Dx%2Capp.kubernetes.io%2Fname%3Dy"
    assert not pods_path("", {"spec": {"selector": {"matchLabels": labels, "matchExpressions": [{}]}}})
