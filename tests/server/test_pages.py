"""What a page of somebody else's may not do with a service that its reader's machine runs."""

import json

import pytest

from server.settings import Settings

pytestmark = pytest.mark.system

HERE = {"Host": "127.0.0.1:8002"}


@pytest.fixture
def client(embedder, serving):
    with serving(embedder, Settings(names="clip.example, other")) as found:
        yield found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example", **HERE}, 403),
        ({"Origin": "null", **HERE}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://127.0.0.1:8002", "Sec-Fetch-Site": "same-origin", **HERE}, 200),
        ({}, 200),
    ],
)
def test_no_other_page_has_it_compute(client, headers, status):
    before = client.metric("inferswarm_requests_total")
    given = {**headers, "Content-Type": "text/plain"}
    code, _, reply = client.request("POST", "/embed", client.body([(1, 2, 3)]), given)
    assert code == status
    if status == 403:
        assert json.loads(reply) == {"detail": "requests from other web pages are refused: use a program"}
    assert client.metric("inferswarm_requests_total") == before + (status == 200)


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/openapi.json", "/gpu-info"])
def test_a_name_that_a_page_has_made_to_stand_for_our_address_is_not_ours(client, path):
    for host in ("evil.example:8002", "127.0.0.1.evil.example", "evil.example.", "[::1", "x@127.0.0.1.evil"):
        status, _, reply = client.request("GET", path, headers={"Host": host})
        assert (status, "INFERSWARM_NAMES" in json.loads(reply)["detail"]) == (421, True), host
    for host in ("127.0.0.1:8002", "localhost", "LOCALHOST:1", "[::1]:8002", "10.1.2.3", "clip.example:80"):
        assert client.request("GET", path, headers={"Host": host})[0] == 200, host


def test_with_a_token_and_for_others_it_has_any_name(embedder, serving):
    with serving(embedder, Settings(token="a-token-of-ours")) as found:
        assert found.request("GET", "/healthz", headers={"Host": "clip.example"})[0] == 200
        assert found.request("GET", "/metrics", headers={"Host": "clip.example"})[0] == 401
    with serving(embedder, Settings(host="0.0.0.0")) as found:
        assert found.request("GET", "/metrics", headers={"Host": "clip.example"})[0] == 200
