"""The service as /openapi.json says it is, and schemathesis' attempts to find it otherwise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from server.service.app import create_app
from server.settings import Settings
from tests.server.colour import ColourEmbedder
from tests.server.running import live

pytestmark = pytest.mark.system

TOKEN = "tok-3n"
LIMITS = {"MAX_BATCH": 4, "MAX_BODY_BYTES": 100_000, "MAX_PIXELS": 100_000}
# That a string is an image is more than a schema can say. And what is too much is 413 here.
CONFIG = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 413]
[[operations]]
include-path = "/embed"
checks.positive_data_acceptance.enabled = false
"""


def described(**settings):
    return create_app(ColourEmbedder(), Settings(**settings)).openapi()["paths"]


def test_bodies_and_answers_are_described():
    for path in ("/embed", "/null"):
        operation = described(max_batch=7)[path]["post"]
        body = operation["requestBody"]
        images = body["content"]["application/json"]["schema"]["properties"]["images"]
        assert (body["required"], images["minItems"], images["maxItems"]) == (True, 1, 7)
        assert images["items"]["contentEncoding"] == "base64"
        assert set(operation["responses"]) == {"200", "400", "403", "408", "413", "421", "429", "502", "503"}
        for status in ("429", "503"):
            assert operation["responses"][status]["headers"]["Retry-After"]["schema"]["minimum"] == 1


def test_with_a_token_all_but_the_probes_want_it():
    operations = {path: next(iter(item.values())) for path, item in described(token=TOKEN).items()}
    guarded = {path for path, operation in operations.items() if "security" in operation}
    assert set(operations) - guarded == {"/healthz", "/readyz"}
    assert {path for path, operation in operations.items() if "401" in operation["responses"]} == guarded
    assert not any("security" in next(iter(item.values())) for item in described().values())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("GET", "/nothing", 404), ("POST", "/embed/", 404), ("POST", "/embed/../healthz", 404)),
        *(("GET", "/embed", 405), ("POST", "/healthz", 405), ("BREW", "/null", 405)),
    ],
)
def test_a_wrong_path_or_method_is_told_so_in_json(client, method, path, status):
    found, headers, reply = client.request(method, path, b"{}")
    assert (found, headers["Content-Type"]) == (status, "application/json")
    assert json.loads(reply)["detail"]


@pytest.mark.parametrize("token", ["", TOKEN])
def test_schemathesis_finds_it_as_described(token, tmp_path):
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    header = {"Authorization": f"Bearer {token}"}
    with live(TOKEN=token, **LIMITS) as service:
        command = [str(Path(sys.executable).with_name("schemathesis")), "run", "--no-color", "--seed", "1"]
        command += ["--max-examples", "150", "--generation-database", "none"]
        command += ["-H", f"Authorization: Bearer {token}"] if token else []
        command.append(f"http://127.0.0.1:{service.port}/openapi.json")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        metrics = service.request("GET", "/metrics", headers=header)[2].decode().splitlines()
        code, said = service.stop()
    assert done.returncode == 0, done.stdout
    assert "6 selected / 6 total" in done.stdout
    counted = {line.split()[0]: float(line.split()[1]) for line in metrics if line[0] != "#"}
    assert counted["inferswarm_requests_total"] > 100
    assert counted["inferswarm_failures_total"] > 100
    assert (code, said) == (0, "")
