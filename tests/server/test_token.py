"""The bearer token, TLS, and what is said of a service that is open to others."""

import json
import shutil
import ssl
import subprocess

import pytest

from server.embedded import fleet
from server.errors import SetUpError
from server.net import get
from server.service import command
from server.settings import Settings
from tests.server.running import live

pytestmark = pytest.mark.system

TOKEN = "tok-3n.of~this_test"
CLOSED = ("/metrics", "/gpu-info", "/openapi.json", "/docs", "/nothing", "/healthz/", "//healthz", "/Healthz")
OPENSSL = shutil.which("openssl")


def bearer(token, scheme="Bearer"):
    return {"Authorization": f"{scheme} {token}"}


@pytest.fixture
def guarded(embedder, serving):
    with serving(embedder, Settings(token=TOKEN, max_body_bytes=100_000)) as client:
        yield client


def test_everything_but_the_probes_wants_the_token(guarded):
    body = guarded.body([(1, 2, 3)])
    assert guarded.request("GET", "/healthz")[0] == guarded.request("GET", "/readyz")[0] == 200
    for method, path in [("POST", "/embed"), ("POST", "/null"), *(("GET", path) for path in CLOSED)]:
        status, headers, reply = guarded.request(method, path, body)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer"), path
        detail = "the service requires its token: send it in the header `Authorization: Bearer`"
        assert json.loads(reply) == {"detail": detail}
        assert guarded.request(method, path, body, bearer(TOKEN))[0] in (200, 404), path
    assert guarded.request("POST", "/embed", body, bearer(TOKEN, "bearer"))[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        {},
        bearer(""),
        bearer(TOKEN[:-1]),
        bearer(TOKEN + "x"),
        bearer(TOKEN.upper()),
        bearer(TOKEN, "Basic"),
        bearer("\xe4"),
        {"Authorization": TOKEN},
        {"X-Authorization": f"Bearer {TOKEN}"},
        {"Cookie": f"Authorization={TOKEN}"},
    ],
)
def test_nearly_the_token_is_not_the_token(guarded, sent):
    assert guarded.request("POST", "/embed", guarded.body([(1, 2, 3)]), sent)[0] == 401
    assert guarded.request("POST", f"/embed?authorization=Bearer%20{TOKEN}", b"", sent)[0] == 401


def test_a_body_too_long_is_dropped_without_the_token(guarded):
    """Of one that is four times too long the rest is not read: its sender may hear a hang-up first."""
    for body in (b"x" * 300_000, iter([b"x" * 90_000] * 4)):
        assert guarded.request("POST", "/embed", body)[0] == 401


def test_the_token_is_never_shown():
    settings = Settings(token=TOKEN)
    assert TOKEN not in repr(settings)
    assert TOKEN not in str(settings)
    assert Settings.from_env(settings.to_env()) == settings


@pytest.mark.parametrize(
    "token", ["two words", "line\nbreak", "tab\t", "ä", "\udcff", "\x7f", "x" * 4097, " "]
)
def test_a_token_that_will_not_do_is_refused_and_not_quoted(token):
    with pytest.raises(SetUpError) as caught:
        Settings.from_env({"INFERSWARM_TOKEN": token})
    assert str(caught.value) == (
        "INFERSWARM_TOKEN is not valid: it takes at most 4,096 characters of ASCII, "
        "without spaces and control characters."
    )


def test_the_supervisor_asks_only_what_needs_no_token(guarded, monkeypatch):
    monkeypatch.setenv("INFERSWARM_TOKEN", TOKEN)
    address = f"127.0.0.1:{guarded.port}"
    assert get(address, "/healthz")[0] == get(address, "/readyz")[0] == 200
    assert fleet.service_told(address)["weights_sha256"] == "0"


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """A certificate for 127.0.0.1, its key, and another key."""
    if OPENSSL is None:
        pytest.skip("no openssl on the path: it makes the certificate")
    folder = tmp_path_factory.mktemp("pem")
    make = [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2"]
    make += ["-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"]
    for name, secret in (("one", ["-nodes"]), ("locked", ["-passout", "pass:secret"])):
        files = ["-out", str(folder / f"{name}.pem"), "-keyout", str(folder / f"{name}.key")]
        subprocess.run([*make, *secret, *files], check=True, capture_output=True)
    return folder


def test_a_service_with_tls_speaks_nothing_else(pem):
    context = ssl.create_default_context(cafile=str(pem / "one.pem"))
    files = {"TLS_CERT": pem / "one.pem", "TLS_KEY": pem / "one.key"}
    with live(context=context, TOKEN=TOKEN, HOST="0.0.0.0", **files) as service:
        assert service.request("GET", "/metrics", headers=bearer(TOKEN))[0] == 200
        assert service.request("GET", "/metrics")[0] == 401
        assert get(f"127.0.0.1:{service.port}", "/healthz") is None
        # Open to others, but not to everybody: nothing to say.
        assert service.stop() == (0, "")


@pytest.mark.parametrize(
    ("cert", "key"),
    [
        *(("one.pem", "locked.key"), ("one.pem", "missing.key"), ("missing.pem", "one.key")),
        *(("one.key", "one.key"), ("locked.pem", "locked.key"), (".", ".")),
    ],
)
def test_files_that_will_not_do_are_named_before_anything_is_loaded(pem, cert, key, monkeypatch):
    monkeypatch.setattr("server.models.clip.ClipEmbedder", lambda settings: pytest.fail("loaded"))
    monkeypatch.setenv("INFERSWARM_TLS_CERT", str(pem / cert))
    monkeypatch.setenv("INFERSWARM_TLS_KEY", str(pem / key))
    with pytest.raises(SetUpError) as caught:
        command.main([])
    said, files = str(caught.value), f"INFERSWARM_TLS_CERT {pem / cert} and INFERSWARM_TLS_KEY {pem / key}"
    assert said.startswith(f"{files} cannot be used (")
    assert said.endswith("): give a certificate and its key without a password, as PEM files.")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(("given", "missing"), [("CERT", "KEY"), ("KEY", "CERT")])
def test_one_file_of_tls_is_not_enough(given, missing):
    with pytest.raises(SetUpError) as caught:
        Settings.from_env({f"INFERSWARM_TLS_{given}": "some.pem"})
    said = "TLS takes INFERSWARM_TLS_CERT and INFERSWARM_TLS_KEY, two PEM files."
    assert str(caught.value) == f"INFERSWARM_TLS_{missing} is not set: {said}"


def test_a_service_open_to_others_says_so_once():
    with live(HOST="0.0.0.0") as service:
        said = (
            f"INFERSWARM_HOST is 0.0.0.0 and INFERSWARM_TOKEN is not set: anyone who can reach port "
            f"{service.port} can use the service and read its metrics; set a token, or INFERSWARM_HOST to "
            "127.0.0.1.\n"
        )
        assert service.stop() == (0, said)
