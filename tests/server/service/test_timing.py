"""Where the service says the time went, and that it spends none on clients that have gone."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from server.service.decode import prepare

pytestmark = pytest.mark.system

HELD_MS = 400.0


def embed(client):
    """The wall time of one request and the parts the service tells of it, in milliseconds."""
    started = time.perf_counter()
    status, headers, _ = client.embed([(9, 9, 9)] * 2)
    wall = (time.perf_counter() - started) * 1e3
    assert status == 200
    parts = dict(part.split(";dur=") for part in headers["Server-Timing"].split(", "))
    return wall, {name: float(value) for name, value in parts.items()}


def test_computing_and_waiting_are_told_apart_and_fit_into_the_wall_time(client, until):
    client.embedder.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(embed, client)
        until(client.embedder.entered.is_set)
        second = pool.submit(embed, client)
        until(lambda: client.metric("inferswarm_in_flight") == 2)
        time.sleep(HELD_MS / 1e3)
        client.embedder.gate.set()
        results = first.result(), second.result()
    for wall, parts in results:
        assert list(parts) == ["decode", "preprocess", "queue", "compute"]
        assert parts["decode"] > 0
        assert parts["preprocess"] > 0
        assert sum(parts.values()) <= wall
    (_, held), (_, queued) = results
    assert held["compute"] >= HELD_MS
    assert held["queue"] < HELD_MS / 2
    assert queued["queue"] >= 0.6 * HELD_MS
    assert queued["compute"] < HELD_MS / 2
    assert 10 * HELD_MS / 1e3 > client.metric("inferswarm_compute_seconds_sum") >= HELD_MS / 1e3


def test_a_reply_does_not_wait_behind_the_decoding_of_others(embedder, serving, until, monkeypatch):
    held, decoding = threading.Event(), threading.Event()

    def prepare_or_hold(body, settings):
        if embedder.entered.is_set():
            decoding.set()
            assert held.wait(20)
        return prepare(body, settings)

    monkeypatch.setattr("server.service.app.prepare", prepare_or_hold)
    monkeypatch.setattr("server.service.app.decode_threads", lambda: 1)
    with serving(embedder) as client, ThreadPoolExecutor(2) as pool:
        embedder.gate.clear()
        first = pool.submit(client.embed, [(1, 2, 3)])
        until(embedder.entered.is_set)
        second = pool.submit(client.embed, [(4, 5, 6)])
        until(decoding.is_set)
        embedder.gate.set()
        assert first.result(10)[0] == 200
        held.set()
        assert second.result(10)[0] == 200


def test_nothing_is_computed_for_a_client_that_has_gone(client, until):
    client.embedder.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.embed, [(1, 2, 3)])
        until(client.embedder.entered.is_set)
        impatient = client.connect()
        impatient.request("POST", "/embed", client.body([(4, 5, 6)] * 3))
        until(lambda: client.metric("inferswarm_in_flight") == 2)
        impatient.close()
        until(lambda: client.metric("inferswarm_in_flight") == 1)
        assert client.metric("inferswarm_failures_total") == 1
        client.embedder.gate.set()
        assert first.result()[0] == 200
    assert client.embed([(7, 8, 9)] * 2)[0] == 200
    assert client.embedder.batches == [1, 2]
    assert client.metric("inferswarm_images_total") == 3


def test_metrics_count_requests_images_and_seconds(client):
    for images in (1, 3):
        assert client.embed([(5, 5, 5)] * images)[0] == 200
    client.request("POST", "/embed", b"{}")
    assert client.metric("inferswarm_requests_total") == 3
    assert client.metric("inferswarm_failures_total") == 1
    assert client.metric("inferswarm_images_total") == 4
    for part in ("decode", "preprocess", "queue", "compute"):
        assert client.metric(f"inferswarm_{part}_seconds_count") == 2
        assert 0 <= client.metric(f"inferswarm_{part}_seconds_sum") < 20
