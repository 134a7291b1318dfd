"""The service over real HTTP: what it answers, and what it says to those who ask wrongly."""

import base64
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image


def near(reply, colours):
    return np.abs(np.round(255 * np.array(reply["embeddings"])) - np.array(colours)).max() <= 2


def test_embeddings_come_in_the_order_sent(client):
    colours = [(250, 10, 20), (10, 250, 20), (10, 20, 250), (128, 128, 128)]
    status, _, reply = client.embed(colours)
    assert status == 200
    assert near(reply, colours)
    assert (reply["model"], reply["dim"]) == ("colour", 3)
    longest = client.body(colours).ljust(100_000)
    assert json.loads(client.request("POST", "/embed", longest)[2]) == reply


def test_requests_at_the_same_time_are_not_mixed(client):
    colours = [(10 * i, 250 - 10 * i, 77) for i in range(24)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda colour: client.embed([colour, colour]), colours))
    for colour, (status, _, reply) in zip(colours, replies, strict=True):
        assert status == 200
        assert near(reply, [colour, colour])


def test_the_service_answers_while_it_computes_and_queues(client, until):
    client.embedder.gate.clear()
    client.embedder.entered.clear()
    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(client.embed, [(1, 2, 3)]) for _ in range(3)]
        until(client.embedder.entered.is_set)
        assert client.request("GET", "/healthz")[::2] == (200, b'{"status":"alive"}')
        until(lambda: client.metric("inferswarm_in_flight") == 3)
        client.embedder.gate.set()
        assert [request.result()[0] for request in slow] == [200] * 3
    assert client.metric("inferswarm_in_flight") == 0


def test_what_a_client_gets_wrong_is_said_in_a_sentence_and_the_service_lives(client):
    bomb = io.BytesIO()
    Image.new("1", (5000, 5000)).save(bomb, "PNG")
    large = b'{"images": ["%s"]}' % base64.b64encode(bomb.getvalue())
    wrong = [
        (b'{"images": ["?"]}', 400, "images[0] is not base64"),
        (b'{"images": ["", "", "", "", ""]}', 413, "`images` has 5 images: send at most 4 per request"),
        (large, 413, "images[0] has too many pixels, 5000 x 5000: send at most 100,000"),
        (b" " * 100_001, 413, "the body is longer than 100,000 bytes: send fewer images per request"),
    ]
    for body, status, sentence in wrong:
        found, _, reply = client.request("POST", "/embed", body)
        assert (found, json.loads(reply)) == (status, {"detail": sentence})
    assert client.metric("inferswarm_failures_total") == len(wrong)
    status, _, reply = client.embed([(9, 99, 199)])
    assert status == 200
    assert near(reply, [(9, 99, 199)])


def test_the_floor_takes_the_same_bodies_and_counts_nothing(client):
    status, headers, reply = client.request("POST", "/null", client.body([(1, 2, 3)] * 2))
    answer = json.loads(reply)
    assert (status, answer["model"], answer["dim"]) == (200, "null", 3)
    assert np.array(answer["embeddings"]).shape == (2, 3)
    parts = dict(part.split(";dur=") for part in headers["Server-Timing"].split(", "))
    assert list(parts) == ["decode", "preprocess", "queue", "compute"]
    assert (parts["preprocess"], parts["compute"]) == ("0.000", "0.000")
    wrong = (b"hello", b'{"images": []}', b'{"images": ["", "", "", "", ""]}', b'{"images": [1]}')
    for body in (*wrong, b" " * 100_001):
        null, embed = (client.request("POST", path, body) for path in ("/null", "/embed"))
        assert null[0] >= 400
        assert null[::2] == embed[::2]
    assert client.embedder.batches == []
    assert client.metric("inferswarm_requests_total") == client.metric("inferswarm_failures_total") == 5
    assert client.metric("inferswarm_images_total") == 0


@pytest.mark.parametrize(("size", "closes"), [(100_001, None), (400_000, None), (400_001, "close")])
def test_a_long_body_is_refused_without_a_content_length(client, size, closes):
    """Of one that is far too long, not all is read."""
    status, headers, reply = client.request("POST", "/embed", iter([b" " * (size - 100_000), b" " * 100_000]))
    assert (status, headers["Connection"]) == (413, closes)
    assert json.loads(reply)["detail"].startswith("the body is longer than 100,000 bytes")


def test_a_flood_of_tiny_values_is_refused_before_it_is_parsed(embedder, serving):
    flood = b"[" + b"[]," * 5_000_000 + b"[]]"
    with serving(embedder) as client:
        with ThreadPoolExecutor(1) as pool:
            refused = pool.submit(client.request, "POST", "/embed", flood)
            slowest = 0.0
            while not refused.done():
                started = time.monotonic()
                assert client.request("GET", "/healthz")[0] == 200
                slowest = max(slowest, time.monotonic() - started)
        status, _, reply = refused.result()
    assert status == 413
    assert json.loads(reply)["detail"] == "the body has far more than 32 values: send at most 32 images"
    assert slowest < 0.5
