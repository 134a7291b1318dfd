"""Who carries a run: workers that are there, that are lost, that come in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from swarm.distributed.workers import Crew

SILENCE_S = 3.0
"""A worker tells how it fares each second; one that has not for so long is lost, or of no use."""
BUSY_S = 1.0
"""A master that has not looked for so long cannot blame the workers for what it has not heard."""


class Muster:
    """The workers of one run; `heard` says when each was last heard of, by `clock`."""

    def __init__(self, crew: Crew, heard: Mapping[str, float], clock: Callable[[], float]) -> None:
        self._crew, self._heard, self._clock = crew, heard, clock
        self._since = self._looked = clock()
        crew.drop_missing()
        self.workers = crew.workers()
        """Whoever is there when the run begins, less those that are lost, with those that come."""
        self._came: dict[str, float] = {}

    def begin_phase(self) -> None:
        """From here on every worker is to be heard of each second."""
        self._since = self._looked = self._clock()

    @property
    def names(self) -> list[str]:
        """The workers' short names."""
        return [self._crew.name(worker) for worker in self.workers]

    @property
    def hosts(self) -> int:
        """How many client hosts they are on."""
        return len({self._crew.host(worker) for worker in self.workers})

    def lost(self) -> list[str]:
        """Those that have gone or fallen silent since the last look."""
        now = self._clock()
        if now - self._looked > BUSY_S:
            self._since = now
        self._looked = now
        there = set(self._crew.workers())
        return [worker for worker in self.workers if worker not in there or self._silent(worker, now)]

    def _silent(self, worker: str, now: float) -> bool:
        last = max(self._since, self._heard.get(worker, 0.0), self._came.get(worker, 0.0))
        return now - last > SILENCE_S

    def drop(self, workers: list[str]) -> Iterator[str]:
        """Do without them from here on; the names of those that took part."""
        for worker in workers:
            if worker in self.workers:
                self.workers.remove(worker)
                self._crew.drop(worker)
                yield self._crew.name(worker)

    def joined(self) -> Iterator[str]:
        """Take in those that have come since the run began; their names."""
        known = set(self.workers)
        for worker in self._crew.workers():
            if worker not in known:
                self.workers.append(worker)
                self._came[worker] = self._clock()
                yield self._crew.name(worker)
