"""More requests than may wait: the rest hear 429 at once, and nothing else happens."""

import asyncio
import gc
import json
import threading
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from server.errors import Refusal
from server.service.app import Service
from server.service.request import Admission, Pool, read_body, retry_after_s
from server.settings import Settings
from tests.server.colour import SlowEmbedder

pytestmark = pytest.mark.system

QUEUE, USERS, EACH, COMPUTE_S = 6, 40, 5, 0.01


@pytest.mark.parametrize(
    ("taken", "each_s", "seconds"),
    [(1, 0, 1), (257, 0.05, 13), (20, 0.05, 1), (21, 0.05, 2), (257, 0.3, 60), (257, 1e9, 60)],
)
def test_how_long_to_wait_goes_by_what_is_under_way(taken, each_s, seconds):
    assert retry_after_s(taken, each_s) == seconds


def test_places_are_those_that_are_computed_and_those_that_wait():
    admission = Admission(at_once=2, max_queue=1)
    admission.answered(2.0)
    for _ in range(3):
        admission.take()
    with pytest.raises(Refusal) as caught:
        admission.take()
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "6"})
    assert caught.value.detail == "the limit of requests in flight (3) is reached: try again in 6 s"
    admission.leave()
    admission.take()
    admission.answered(1.0)
    with pytest.raises(Refusal) as caught:
        admission.take()
    # Nine parts of what it was, and one of what it is.
    assert caught.value.headers == {"Retry-After": "6"}


@pytest.mark.parametrize(
    ("settings", "least", "most"),
    [(Settings(max_queue=19), 2, 20), (Settings(max_queue=4, upstream="x:1"), 1, 1)],
)
def test_how_long_a_request_takes_is_measured(client, settings, least, most):
    """Of 0.1 s each, twenty of which are computed one after the other, or sixteen at a time."""
    service = Service(SlowEmbedder(0.1), settings)
    asyncio.run(service.embed(client.body([(1, 2, 3)]).encode()))
    for _ in range(20):
        service.admission.take()
    with pytest.raises(Refusal) as caught:
        service.admission.take()
    assert least <= int(caught.value.headers["Retry-After"]) <= most
    service.close()


def test_without_a_queue_a_second_request_is_shed_and_its_body_never_parsed(embedder, serving, until):
    with serving(embedder, Settings(max_queue=0)) as client, ThreadPoolExecutor(1) as pool:
        embedder.gate.clear()
        held = pool.submit(client.embed, [(1, 2, 3)])
        until(embedder.entered.is_set)
        for path, body in (("/embed", b"no JSON"), ("/null", b"no JSON"), ("/embed", b"x" * 33 * 2**20)):
            status, headers, reply = client.request("POST", path, body)
            assert (status, headers["Retry-After"]) == (429, "1")
            detail = "the limit of requests in flight (1) is reached: try again in 1 s"
            assert json.loads(reply) == {"detail": detail}
        assert client.request("GET", "/healthz")[0] == 200
        embedder.gate.set()
        assert held.result()[0] == 200
        assert client.metric("inferswarm_shed_total") == 3
        assert client.metric("inferswarm_in_flight") == 0
        assert client.embed([(1, 2, 3)])[0] == 200


@pytest.mark.parametrize("settings", [Settings(max_queue=QUEUE), Settings(max_queue=QUEUE, upstream="x:1")])
def test_overload_is_shed_and_the_service_is_as_before(settings, serving, monkeypatch):
    """Closed-loop users, many more than places; a gateway has a place for each call it makes at once."""
    room = settings.at_once + QUEUE
    most = []
    take = Admission.take

    def counted(admission):
        take(admission)
        most.append(admission._taken)

    monkeypatch.setattr(Admission, "take", counted)
    ended: Counter = Counter()

    def user(client, body, start):
        start.wait()
        for number in range(EACH):
            status, headers, _ = client.request("POST", ("/embed", "/null")[number % 2], body)
            ended[status] += 1
            if status == 429:
                assert 1 <= int(headers["Retry-After"]) <= 60

    with serving(SlowEmbedder(COMPUTE_S), settings) as client:
        body = client.body([(1, 2, 3)])
        start = threading.Barrier(USERS)
        with ThreadPoolExecutor(USERS) as pool:
            for done in [pool.submit(user, client, body, start) for _ in range(USERS)]:
                done.result()
        assert set(ended) == {200, 429}
        assert ended.total() == USERS * EACH
        assert ended[200] >= room
        assert client.metric("inferswarm_shed_total") == ended[429] > 0
        assert max(most) == room
        assert client.metric("inferswarm_in_flight") == 0
        again = [client.embed([(200, 10, 10)])[::2] for _ in range(3)]
        assert [status for status, _ in again] == [200] * 3
        assert len({json.dumps(reply) for _, reply in again}) == 1


async def held_pool():
    """A pool, what it is busy with, and what ends that."""
    pool, busy, released = Pool(1, "busy"), threading.Event(), threading.Event()
    first = asyncio.create_task(pool.run(lambda: (busy.set(), released.wait(20))))
    await asyncio.to_thread(busy.wait, 20)
    return pool, first, released


def test_a_body_is_not_kept_for_a_client_that_has_gone():
    """Threads come to cancelled work late; what it holds goes at once."""

    class Body:
        pass

    async def give_up():
        pool, first, released = await held_pool()
        body = Body()
        kept = weakref.ref(body)
        second = asyncio.create_task(pool.run(id, body))
        await asyncio.sleep(0)
        del body
        assert kept() is not None
        second.cancel()
        await asyncio.wait([second])
        assert second.cancelled()
        # Its traceback holds it too, for as long as the task is there.
        del second
        gc.collect()
        gone = kept() is None
        released.set()
        await first
        pool.close()
        return gone

    assert asyncio.run(give_up())


def test_a_pool_that_is_closed_finishes_what_it_does_and_begins_no_more():
    async def close():
        (pool, first, released), done = await held_pool(), []
        second = asyncio.create_task(pool.run(done.append, "second"))
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(pool.close))
        await asyncio.wait([second], timeout=1)
        released.set()
        await asyncio.wait([first, second, closing])
        return first.result().value, second.cancelled(), done

    assert asyncio.run(close()) == ((None, True), True, [])


def test_a_request_that_waits_for_the_model_no_longer_holds_its_body(embedder, serving, until, monkeypatch):
    freed = threading.Event()

    class Body(bytes):
        def __del__(self):
            freed.set()

    async def watched(request, settings):
        return Body(await read_body(request, settings))

    monkeypatch.setattr("server.service.app.read_body", watched)
    with serving(embedder) as client, ThreadPoolExecutor(1) as pool:
        embedder.gate.clear()
        waiting = pool.submit(client.embed, [(1, 2, 3)])
        until(embedder.entered.is_set)
        until(freed.is_set)
        assert not waiting.done()
        embedder.gate.set()
        assert waiting.result()[0] == 200
