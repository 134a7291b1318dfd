"""A backend and its codec in one file: a protocol, metrics and settings of its own (tests/toy_server.py).

    locust -f tests/toy_backend.py,locustfiles/step7.py --endpoints 'toy-*' --toy-url gpu-host:9000 …

In `users/backends/` it would say `BACKENDS = (TOY, …)` in place of its last line, and no more.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from users import Backend, Codec, Endpoint, Facts, register, register_codec
from users.codecs.base import Answer, PreparedRequest
from users.contract import Contract, Input
from users.errors import TargetError
from users.inputs.images import ImageSet
from users.transport.admin_connection import PATIENCE_S, AdminConnection, Read, get

TAKES = Contract((Input("pictures", "BYTES", (1,), "jpeg"),))


class Toy(Codec):
    """Base64 JPEG in JSON, as `/v1/vectors` takes it."""

    name, wire, path = "toy", "http", "/v1/vectors"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        pictures = [base64.b64encode(images.jpegs[index]).decode() for index in indices]
        return PreparedRequest(json.dumps({"pictures": pictures}).encode(), indices)

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        return np.array(json.loads(bytes(answer.body))["vectors"], dtype=np.float32)

    def server_ns(self, answer: Answer) -> Mapping[str, int]:
        return {"compute": int(answer.headers["x-compute-us"]) * 1_000}


def about(endpoint: Endpoint) -> Any:
    """What it says of itself."""
    return get(endpoint, "/about").json()


def check(endpoint: Endpoint) -> None:
    if about(endpoint).get("maker") != "toy":
        raise TargetError("is no toy; give a toy's port")


def describe(endpoint: Endpoint) -> Mapping[str, Any]:
    told = about(endpoint)
    return {"weights": told["weights"], "serving": Settings().serving(told)}


@contextmanager
def counters(endpoint: Endpoint, timeout_s: float) -> Iterator[Read]:
    with closing(AdminConnection.to(endpoint, timeout_s)) as connection:

        def read() -> dict[str, Any]:
            told = connection.get_json("/counts")
            return {"server": {"requests": told["asked"], "images": told["pictures"]}}

        yield read


def metrics(endpoint: Endpoint) -> Callable[[str], dict[str, Any]]:
    return lambda page: {"pending_requests": int(re.findall(r"toy_waiting{.*?} (\d+)", page)[0])}


class Settings:
    """Its replicas can be more."""

    def inner(self, endpoint: Endpoint) -> Endpoint:
        return endpoint

    def config_of(self, endpoint: Endpoint) -> Mapping[str, Any]:
        return {"replicas": about(endpoint)["replicas"]}

    def refusal(self, endpoint: Endpoint) -> str:
        return ""

    def configured(self, original: Any, queue_delay_us: int | None, instances: int) -> Mapping[str, Any]:
        if queue_delay_us is not None:
            raise TargetError("a toy waits for nobody, so --queue-delay-us has nothing to set; leave it out")
        return {"replicas": instances or original["replicas"]}

    def load(self, endpoint: Endpoint, config: Mapping[str, Any]) -> None:
        with closing(AdminConnection.to(endpoint, PATIENCE_S)) as connection:
            connection.ask("POST", "/replicas", config)

    def is_ready(self, endpoint: Endpoint) -> bool:
        return True

    def serving(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return {"instances": config["replicas"], "batching": False, "batching_delay_ns": 0}


def toy(name: str, facts: Facts) -> Backend:
    return Backend(
        name=name,
        ways={("jpeg", "http"): ("toy", TAKES)},
        facts=facts,
        check=check,
        describe=describe,
        counters=counters,
        metrics=metrics,
        adjust=Settings(),
        urls={"http": f"the {name}, e.g. gpu-host:9000", "metrics": "its metrics, at /metrics"},
    )


TOY = toy("toy", Facts(stands_for="trt", stand_in="Toy: a stand-in for an engine that is not there."))
NAP = toy("nap", Facts(computes=False, emulated=True))
register_codec(Toy)
register(TOY, NAP)
