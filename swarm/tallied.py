"""Locust's statistics of requests, counted in batches: one by one they cost a worker a tenth of a request."""

from __future__ import annotations

from locust import stats
from locust.stats import RequestStats, StatsEntry

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

MOST_PENDING = 64
"""To count so many takes a tenth of a millisecond, in which no request is sent and no answer is heard."""

Entries = dict[tuple[str, str], StatsEntry]


class Logged(NamedTuple):
    """A request that is still to be counted."""

    entry: StatsEntry
    ended_s: float
    response_ms: float | None
    content_bytes: int

    @property
    def group(self) -> tuple[int, int]:
        """What is counted together: an entry's requests of a second of the wall clock."""
        return id(self.entry), int(self.ended_s)


class TalliedStats(RequestStats):
    """As Locust's own, figure for figure: who reads `total` or `entries` finds every request in them.

    They are to be read each time: an entry that was kept lacks what came since.
    """

    def __init__(self, use_response_times_cache: bool = True) -> None:
        self._pending: list[Logged] = []
        super().__init__(use_response_times_cache)

    @property
    def total(self) -> StatsEntry:
        """Of all requests."""
        self._count()
        return self._total

    @total.setter
    def total(self, entry: StatsEntry) -> None:
        self._count()  # what came before belongs to the old one
        self._total = entry

    @property
    def entries(self) -> Entries:
        """By name and method."""
        self._count()
        return self._entries

    @entries.setter
    def entries(self, entries: Entries) -> None:
        self._count()
        self._entries = entries

    def log_request(self, method: str, name: str, response_time: float | None, content_length: int) -> None:
        """Keep a request until somebody asks, or there are many."""
        entry = self._entries[name, method]
        self._pending.append(Logged(entry, time.time(), response_time, content_length))
        if len(self._pending) == MOST_PENDING:
            self._count()

    def _count(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            for (_, second), group in itertools.groupby(pending, lambda logged: logged.group):
                requests = list(group)
                for entry in (self._total, requests[0].entry):
                    count(entry, second, requests)


def count(entry: StatsEntry, second: int, requests: Sequence[Logged]) -> None:
    """Count the requests of a second, in the order they ended: what StatsEntry.log does for each of them."""
    if entry.use_response_times_cache and second > int(entry.last_request_timestamp or second):
        entry._cache_response_times(second - 1)
    times_ms = [request.response_ms for request in requests if request.response_ms is not None]
    entry.num_requests += len(requests)
    entry.num_none_requests += len(requests) - len(times_ms)
    entry.num_reqs_per_sec[second] += len(requests)
    entry.last_request_timestamp = requests[-1].ended_s
    entry.total_content_length += sum(request.content_bytes for request in requests)
    entry.total_response_time = sum(times_ms, entry.total_response_time)  # type: ignore[assignment]
    if times_ms:
        so_far = times_ms if entry.min_response_time is None else [entry.min_response_time, *times_ms]
        entry.min_response_time = min(so_far)  # type: ignore[assignment]
        entry.max_response_time = max(entry.max_response_time, *times_ms)  # type: ignore[assignment]
    for bucket, times in Counter(map(stats.bucket_response_time, times_ms)).items():
        entry.response_times[bucket] += times
