"""What an answer's headers tell of caches, by themselves and on a real connection."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.pictures import image_set
from tests.swarm.wsgi import serving
from users.codecs.cache_headers import told_cached
from users.codecs.embed import Embed
from users.endpoint import Endpoint
from users.transport.transports import client

EMBEDDING = [1.0, *[0.0] * 511]


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"content-type": "application/json"}, None),
        ({"x-cache": "HIT"}, True),
        ({"x-cache": "TCP_MEM_HIT from cache.example"}, True),
        ({"x-cache": "RefreshHit from cloudfront"}, True),
        ({"x-cache": "MISS, HIT"}, True),
        ({"x-cache": "TCP_MISS from cache.example"}, False),
        ({"x-cache": "MISS from architect.example, MISS from white.example"}, False),
        ({"x-cache": "edge1 miss, white2 hit/4"}, True),
        ({"x-cache-lookup": "HIT from squid:3128"}, None),
        ({"cache-control": "max-age=9, stale-while-revalidate=9"}, None),
        ({"cf-aig-cache-status": "HIT"}, True),
        ({"x-litespeed-cache": "hit"}, True),
        ({"x-vercel-cache": "MISS"}, False),
        ({"cf-cache-status": "HIT"}, True),
        ({"cf-cache-status": "DYNAMIC"}, False),
        ({"x-cache-status": "STALE"}, True),
        ({"x-proxy-cache": "BYPASS"}, False),
        ({"cache-status": "Edge; fwd=uri-miss, Origin; hit; ttl=30"}, True),
        ({"cache-status": "Edge; fwd=stale"}, False),
        ({"cache-status": "Edge; hit=?0; fwd=miss"}, False),
        ({"age": "17"}, True),
        ({"age": "100"}, True),
        ({"age": "0"}, False),
        ({"age": "00"}, False),
        ({"age": "-1"}, False),
        ({"age": "old"}, False),
        ({"age": "0", "x-cache": "HIT"}, True),
    ],
)
def test_whether_a_cache_answered(headers: dict[str, str], told: bool | None) -> None:
    assert told_cached(headers) is told


@pytest.mark.system
@pytest.mark.parametrize("by_library", [False, True])
def test_each_answer_is_looked_at(by_library: bool) -> None:
    answers = iter([[("X-Cache", "MISS")], [("X-Cache", "HIT"), ("Age", "3")], []])

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        body = json.dumps({"embeddings": [EMBEDDING]}).encode()
        start("200 OK", [*next(answers), ("Content-Length", str(len(body)))])
        return [body]

    images = image_set(1)
    with serving(answer) as address:
        codec = Embed(Endpoint("x", "pytorch", "http", "jpeg", address))
        with client(codec, 5, by_library=by_library) as asking:
            prepared = codec.prepare(images, (0,))
            assert [asking.send(prepared).from_cache for _ in range(3)] == [False, True, None]
