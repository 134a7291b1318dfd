"""Addresses as they are typed: what they stand for, and that no secret in one is ever quoted."""

import pytest

from swarm.errors import UsageError
from swarm.options.addresses import Place, place_of


@pytest.mark.parametrize(
    ("protocol", "url", "place"),
    [
        ("http", "gpu:8010", Place("gpu:8010")),
        ("http", "http://gpu:8010/", Place("gpu:8010")),
        ("http", "HTTPS://gpu:8010/", Place("gpu:8010", tls=True)),
        ("http", "http://[::1]:8010", Place("[::1]:8010")),
        ("grpc", "grpc://10.0.0.1:8011", Place("10.0.0.1:8011")),
        ("grpc", "http://gpu:8011", Place("gpu:8011")),
        ("grpc", "grpcs://gpu:8011", Place("gpu:8011", tls=True)),
        ("grpc", "https://[::1]:8011", Place("[::1]:8011", tls=True)),
    ],
)
def test_places(protocol: str, url: str, place: Place) -> None:
    assert place_of("--x", url, protocol) == place


@pytest.mark.parametrize(
    "url",
    [
        *("gpu", "ftp://gpu:1", "grpc://gpu:1", "grpcs://gpu:1", "http://:80", "gpu:port", "gpu:99999", "::"),
        *(
            "https://gpu",
            "http://gpu:1/embed",
            "gpu:1#part",
            "g pu:1",
            "gpü:1",
            "gpu..lab:1",
            "g" * 64 + ":1",
        ),
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        place_of("--onnx-http-url", url)
    over = "http://host:port (https for TLS)"
    assert str(caught.value) == f"--onnx-http-url {url!r}: give host:port or {over}, and no path"


@pytest.mark.parametrize(
    "url",
    [
        *("https://me:hunter2@gpu:1", "https://hunter2@gpu:1", "me:hunter2@gpu:port", "gpu:1?key=hunter2"),
        *("ftp://gpu/?hunter2", "//hunter2@"),
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_quoted(url: str) -> None:
    for protocol in ("http", "grpc"):
        with pytest.raises(UsageError) as caught:
            place_of("--x", url, protocol)
        assert str(caught.value).startswith("--x: has a name, a password or a query in it")
        assert "INFERSWARM_TOKEN" in str(caught.value)
        assert "hunter2" not in str(caught.value)
