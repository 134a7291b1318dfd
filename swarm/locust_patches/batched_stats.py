"""Locust's statistics of requests, counted in batches: one by one they cost a worker a tenth of a request."""

from __future__ import annotations

from locust import stats
from locust.stats import RequestStats, StatsEntry

import time
from collections import Counter

MOST_TALLIED = 64
"""To count so many takes a tenth of a millisecond, in which no request is sent and no answer is heard."""

Key = tuple[str, str, int]
"""Name, method, second of the wall clock."""
Entries = dict[tuple[str, str], StatsEntry]


class Tally:
    """Requests of one key that are still to be counted."""

    __slots__ = ("content_bytes", "key", "last_s", "times_ms")

    def __init__(self, key: Key | None) -> None:
        self.key = key
        self.times_ms: list[float | None] = []
        self.content_bytes = 0
        self.last_s = 0.0

    def count(self, entry: StatsEntry) -> None:
        """What StatsEntry.log does for each of them."""
        second = int(self.last_s)
        if entry.use_response_times_cache and second > int(entry.last_request_timestamp or second):
            entry._cache_response_times(second - 1)
        times_ms = [time_ms for time_ms in self.times_ms if time_ms is not None]
        entry.num_requests += len(self.times_ms)
        entry.num_none_requests += len(self.times_ms) - len(times_ms)
        entry.num_reqs_per_sec[second] += len(self.times_ms)
        entry.last_request_timestamp = self.last_s
        entry.total_content_length += self.content_bytes
        entry.total_response_time = sum(times_ms, entry.total_response_time)  # type: ignore[assignment]
        if times_ms:
            so_far = times_ms if entry.min_response_time is None else [entry.min_response_time, *times_ms]
            entry.min_response_time = min(so_far)  # type: ignore[assignment]
            entry.max_response_time = max(entry.max_response_time, *times_ms)  # type: ignore[assignment]
        for bucket, times in Counter(map(stats.bucket_response_time, times_ms)).items():
            entry.response_times[bucket] += times


class BatchedStats(RequestStats):
    """As Locust's own, figure for figure: who reads `total` or `entries` finds every request in them.

    They are to be read each time: an entry that was kept lacks what came since.
    """

    def __init__(self, use_response_times_cache: bool = True) -> None:
        self._tally = Tally(None)
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
        """Keep a request until somebody asks, another name or second comes, or there are many."""
        now_s = time.time()
        tally, key = self._tally, (name, method, int(now_s))
        if key != tally.key or len(tally.times_ms) == MOST_TALLIED:
            self._count()
            tally = self._tally = Tally(key)
            self._entries[name, method]  # made now, at its first request
        tally.times_ms.append(response_time)
        tally.content_bytes += content_length
        tally.last_s = now_s

    def _count(self) -> None:
        tally, self._tally = self._tally, Tally(None)
        if tally.key is not None:
            name, method, _ = tally.key
            for entry in (self._total, self._entries[name, method]):
                tally.count(entry)
