"""Options of TLS: files and combinations that serve, and the sentence for those that do not."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from swarm.errors import UsageError
from swarm.targets.endpoints import FIVE, chosen, endpoints_from_options, endpoints_from_ready
from swarm.targets.servers import check_provable
from tests.certificates import Certificates
from tests.swarm.options.test_parse import options
from users.tls import OPEN, TOKEN, Security

FIVE_WAYS = chosen(FIVE, options())
NO_KEY = "holds no private key without a passphrase; name a file in PEM form"
NO_SECRETS = "has a name, a password or a query in it, which would be kept in the study's files; leave it out"
HTTPS, GRPCS = ("--onnx-http-url", "https://gpu:8010"), ("--onnx-grpc-url", "grpcs://gpu:8011")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    found = Certificates(folder)
    key = serialization.load_pem_private_key(Path(found.client.key).read_bytes(), None)
    encrypted = serialization.BestAvailableEncryption(b"phrase")
    locked = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encrypted)
    (folder / "locked.key").write_bytes(locked)
    (folder / "text.pem").write_text("this is text")
    return found


def provable(*arguments: str) -> None:
    """Raises UsageError where targets by URL do not serve."""
    check_provable(endpoints_from_options(options(*arguments), FIVE_WAYS))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--tls-ca {folder}/ca.pem --onnx-http-url gpu:8010",
         "--tls-ca: applies only to TLS; also give a target as https://host:port or grpcs://host:port"),
        ("--tls-no-verify",
         "--tls-no-verify: applies only to TLS; also give a target as https://host:port or grpcs://host:port"),
        ("--tls-client-cert {folder}/client.pem {https}",
         "--tls-client-cert: a certificate and its key belong together; also give --tls-client-key"),
        ("--tls-client-key {folder}/client.key {https}",
         "--tls-client-key: a certificate and its key belong together; also give --tls-client-cert"),
        ("--tls-ca {folder}/none.pem {https}",
         "--tls-ca {folder}/none.pem: cannot be read (No such file or directory); name a file in PEM form"),
        ("--tls-ca {folder}/text.pem {grpcs}",
         "--tls-ca {folder}/text.pem: holds no certificate; name a file in PEM form"),
        ("--tls-client-cert {folder}/text.pem --tls-client-key {folder}/client.key {https}",
         "--tls-client-cert {folder}/text.pem: holds no certificate; name a file in PEM form"),
        ("--tls-client-cert {folder}/client.pem --tls-client-key {folder}/server.key {https}",
         "--tls-client-key {folder}/server.key: is not the key of {folder}/client.pem; name the one that is"),
        ("--tls-client-cert {folder}/client.pem --tls-client-key {folder}/locked.key {https}",
         f"--tls-client-key {{folder}}/locked.key: {NO_KEY}"),
        ("--tls-no-verify --tls-ca {folder}/ca.pem {https}",
         "--tls-no-verify: ignores --tls-ca; leave out one of them"),
        ("--tls-no-verify {https} {grpcs}",
         "--tls-no-verify: gRPC always verifies certificates; give --tls-ca instead, or leave out"
         " --onnx-grpc-url"),
        ("--onnx-metrics-url https://gpu:1/metrics?token=hunter2 {https}",
         f"--onnx-metrics-url: {NO_SECRETS}"),
    ],
)  # fmt: skip
def test_what_does_not_serve(made: Certificates, arguments: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        provable(*arguments.format(folder=made.folder, https=" ".join(HTTPS), grpcs=" ".join(GRPCS)).split())
    assert str(caught.value).startswith(sentence.format(folder=made.folder))
    assert "hunter2" not in str(caught.value)


def test_endpoints_know_how_they_are_secured(made: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "all")
    monkeypatch.setenv("INFERSWARM_ONNX_TOKEN", "own")
    monkeypatch.setenv("INFERSWARM_TRT_TOKEN", "")
    files = ("--tls-ca", made.ca, "--tls-client-cert", made.client.cert, "--tls-client-key", made.client.key)
    asked = options(*files, *HTTPS, *GRPCS, "--pytorch-url", "http://gpu:8002", "--trt-http-url", "gpu:8020")
    found = {endpoint.name: endpoint for endpoint in endpoints_from_options(asked, FIVE_WAYS)}
    assert [e.tls for e in found.values()] == [False, True, True, False]
    onnx = "INFERSWARM_ONNX_TOKEN"
    assert [e.security.token for e in found.values()] == [TOKEN, onnx, onnx, TOKEN]
    own = Security(made.ca, made.client.cert, made.client.key, True, onnx)
    assert found["onnx-grpc"].security == found["onnx-grpc"].floor().security == own
    assert asked.to_record()["tls_client_key"] == made.client.key
    shown = ["gpu:8002", "https://gpu:8010", "grpcs://gpu:8011", "gpu:8020"]
    assert [endpoint.shown for endpoint in found.values()] == shown


def test_without_a_token_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    (made,) = endpoints_from_options(options("--pytorch-url", "gpu:1"), FIVE_WAYS)
    assert made.security == OPEN


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "nul\x7f", "schlüssel", "x" * 4097])
def test_tokens_that_are_none_are_not_quoted(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERSWARM_PYTORCH_TOKEN", token)
    with pytest.raises(UsageError) as caught:
        endpoints_from_options(options("--pytorch-url", "gpu:1"), FIVE_WAYS)
    assert str(caught.value).startswith(
        "INFERSWARM_PYTORCH_TOKEN is not a token: give printable ASCII without"
    )
    assert token not in str(caught.value)


def test_embedded_services_get_the_token_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "x" * 4096)
    monkeypatch.setenv("INFERSWARM_PYTORCH_TOKEN", "of another server")
    servers = {"pytorch": {"url": "https://h:2"}, "onnx": {"http": "h:3", "grpc": "h:4", "model": "m"}}
    service, triton, _ = endpoints_from_ready({"endpoints": servers}, FIVE_WAYS)
    assert (service.tls, service.security) == (True, Security(token=TOKEN))
    assert (triton.tls, triton.security) == (False, OPEN)
