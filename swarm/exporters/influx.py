"""Every second's figures for InfluxDB, and for what reads its line protocol: a batch a second over HTTP."""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

from influxdb_client.client.write.point import Point

from reports.fold.timeline import ClientSecond, RunSecond, SampledSecond
from reports.format import plural
from swarm.errors import UsageError
from swarm.events import HealthEvent, RunEnded, SampleEvent, StudyStarted, WindowEvent
from swarm.options.values import INFLUX_TOKEN
from users.errors import RequestError
from users.redact import quoted
from users.tls import Security, SecurityError, token_of
from users.transport.admin_connection import AdminConnection, Told

TIMEOUT_S = 3.0
"""For one batch: less than the end of a study waits for listeners."""
EVERY_S, LONGEST_S = 1.0, 30.0
"""Between two batches; after each that failed twice as long, up to the second."""
MOST_AT_ONCE, MOST_WAITING = 2_000, 50_000
"""Points in a request, less than 1 MB, as proxies take; and points that wait for a receiver, some 20 MB: of
more the oldest are dropped."""
WRITTEN = (200, 204)
LATER = (408, 429)
"""Of the answers from 400 to 499 those after which the same points may be sent again."""
NS_PER_S = 1_000_000_000
Post = Callable[[bytes], Told]


class Influx:
    """Listens to a study's seconds, and writes them as points with `post`; `clock` counts seconds.

    A point that comes again, since more of its second has arrived, replaces the first. What is not written
    yet waits, and is counted as missed while the receiver does not take it.
    """

    flag = "--influx-url"

    def __init__(self, post: Post, clock: Callable[[], float] = time.monotonic) -> None:
        self._post, self._clock = post, clock
        self._waiting = deque[str]()
        self._study, self._fault = "", ""
        self._given = self._dropped = 0
        self._due, self._pause_s = 0.0, EVERY_S
        self._failing = False

    def on_study_started(self, study: StudyStarted, **_: Any) -> None:
        """Which study its points are of; losses are counted anew."""
        self._study, self._given, self._dropped = study.name, len(self._waiting), 0

    def on_window(self, window: WindowEvent, **_: Any) -> None:
        """What clients did."""
        counts = {"ok": window.ok, "failures": sum(window.failures.values()), "images": window.images}
        self._add("inferswarm_client", window, {**own_fields(ClientSecond, window), **counts})

    def on_health(self, health: HealthEvent, **_: Any) -> None:
        """How each worker fared."""
        for worker, one in health.workers.items():
            self._add("inferswarm_worker", health, vars(one), worker=worker)

    def on_sample(self, sample: SampleEvent, **_: Any) -> None:
        """What server and GPUs said."""
        replicas = {f"replicas_{name}": count for name, count in sample.replicas.items()}
        self._add("inferswarm_server", sample, {**own_fields(SampledSecond, sample), **replicas})
        for gpu in sample.gpus:
            self._add("inferswarm_gpu", sample, gpu, gpu=str(gpu.get("id", "")))

    def on_run_ended(self, run: RunEnded, **_: Any) -> None:
        """All its seconds are told: nothing waits for the next."""
        self._send()

    def _add(self, name: str, of: Any, values: Mapping[str, Any], **tags: str) -> None:
        """A point of one second: its numbers, all of one type, since a receiver refuses a field of two."""
        point = Point(name).time(of.second * NS_PER_S)  # type: ignore[no-untyped-call]
        run = {"cell": of.cell, "repeat": str(of.repeat), "phase": of.phase, "study": self._study}
        for tag, value in {**run, "endpoint": of.cell.partition("/")[0], **tags}.items():
            point.tag(tag, value)
        for field, value in values.items():
            if isinstance(value, (int, float)):
                point.field(field, float(value))
        if line := point.to_line_protocol():
            self._given += 1
            self._waiting.append(line)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self._dropped += 1
        if self._clock() >= self._due:
            self._send()

    def _send(self) -> None:
        """All that waits, until the receiver does not take it."""
        while self._waiting:
            batch = [self._waiting[place] for place in range(min(MOST_AT_ONCE, len(self._waiting)))]
            fault, again = refusal(self._post, "\n".join(batch).encode())
            self._failing = bool(fault) and again
            # That of the first loss: one after which all was taken in the end is not told of.
            self._fault = self._fault if self._dropped else fault
            if self._failing:
                break
            self._dropped += len(batch) if fault else 0
            for _ in batch:
                self._waiting.popleft()
        self._pause_s = min(2 * self._pause_s, LONGEST_S) if self._failing else EVERY_S
        self._due = self._clock() + self._pause_s

    def missed(self) -> str:
        """How many points of this study are not written, and why."""
        lost = self._dropped + (len(self._waiting) if self._failing else 0)
        if not lost:
            return ""
        return f"--influx-url: {lost:,} of {plural(self._given, 'point')} not written ({self._fault})."


def own_fields(kind: type[RunSecond], second: Any) -> dict[str, Any]:
    """The figures that one kind of second has beside those of which second it is."""
    shared = {one.name for one in fields(RunSecond)}
    return {one.name: getattr(second, one.name) for one in fields(kind) if one.name not in shared}


def refusal(post: Post, body: bytes) -> tuple[str, bool]:
    """Why a receiver does not take a batch, or nothing, and whether it may take it later."""
    try:
        told = post(body)
    except RequestError as error:
        return str(error), True
    if told.status in WRITTEN:
        return "", False
    return said(told), told.status in LATER or told.status >= 500


def said(told: Told) -> str:
    """An answer that is no success, in a few words."""
    return f"HTTP {told.status}: {quoted(told.text)}".rstrip(": ")


def open_influx(url: str, ca: str = "") -> Influx:
    """What writes to a URL, over TLS as the authorities in the file `ca` allow.

    One point, `inferswarm_check`, is written first. Raises UsageError where it is not taken.
    """
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    # That of the targets is not for others.
    security = Security(ca=ca, token=INFLUX_TOKEN if os.environ.get(INFLUX_TOKEN) else "")
    try:
        token = token_of(security)
        headers = {"Authorization": f"Token {token}"} if token else {}
    except SecurityError as error:
        raise UsageError(f"--influx-url: {error}") from error

    def post(body: bytes) -> Told:
        # Each on a connection of its own: between two runs a receiver may close what is idle.
        address = f"{host}:{parts.port or (443 if tls else 80)}"
        with closing(AdminConnection(address, TIMEOUT_S, tls, security, headers)) as connection:
            return connection.ask("POST", path, body)

    fault, _ = refusal(post, b"inferswarm_check ok=1")
    if fault:
        fix = "check the address, the database or bucket, and the token"
        raise UsageError(f"--influx-url {url}: does not take points ({fault}); {fix} in {INFLUX_TOKEN}")
    return Influx(post)
