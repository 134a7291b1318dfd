"""What the conductor acts through, including the users, which Locust's runner spawns.

Tests pass fakes, and a clock that only sleeping moves.
"""

from locust.env import Environment
from locust.runners import MasterRunner, Runner

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import gevent

from swarm import clock as wall_clock
from swarm.distributed.collector import Collector
from swarm.distributed.worker_cell import user_classes_of
from swarm.distributed.workers import Workers
from swarm.output.run_fold import RunFold
from swarm.plan.cell import Cell, PlannedRun
from swarm.sampling.sampler import Sampler
from swarm.sampling.triton_trace import Joined
from swarm.targets.cold_start import FirstCalls
from users.endpoint import Endpoint


@dataclass
class Dependencies:
    """`spawn` brings the users of each cell of a run to a count; `probe` reads its server's counters,
    `serving` how it is set up; `traced` finds a run's requests in the server's trace, if it traces;
    `server_fault` says what is wrong with a server by its backend's name, or nothing; `addresses` has where
    each host reaches a cell's server, where it is not the endpoint's own address; `stopped` says why a
    threshold stops the study, or nothing; `clock` and `sleep` count seconds, `wall_ns` is the time of day,
    and `step_s` by how much the machine's own clock has been set since.
    """

    workers: Workers
    collector: Collector
    fold: RunFold
    sampler: Sampler
    spawn: Callable[..., None]
    probe: Callable[[Endpoint], dict[str, Any]]
    serving: Callable[[Endpoint], dict[str, Any]]
    traced: Callable[[PlannedRun], Joined | None]
    first_calls: FirstCalls
    server_fault: Callable[[str], str]
    addresses: Callable[[Cell], dict[str, str]]
    stopped: Callable[[], str]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = gevent.sleep
    wall_ns: Callable[[], int] = wall_clock.wall_ns
    utc: Callable[[], str] = wall_clock.utc_now
    step_s: Callable[[], float] = wall_clock.step_s
    set_up: Callable[[Cell], Sequence[Endpoint]] = lambda cell: ()
    """Configures a cell's server; returns the endpoints whose models were reloaded for it."""
    caveats_of: Callable[[Endpoint], Iterable[tuple[str, str]]] = lambda endpoint: ()
    """Caveats, as code and text, of every run of an endpoint."""
    memory: Callable[[Endpoint], dict[str, Any]] = lambda endpoint: {}
    """A server's memory in use; nothing for servers that were not started here."""


class Users:
    """Those of the runner, of the locustfile's user class."""

    def __init__(self, environment: Environment, runner: Runner) -> None:
        self._environment, self._runner = environment, runner

    def spawn(self, *counts: int) -> None:
        """Bring the users of each cell of a run to its count, and wait until they are there; none ends all.

        The users of one cell come after those of another, so that Locust spreads each over all workers.
        """
        classes, total = user_classes_of(self._environment), 0
        for user_class, count in zip(classes, counts or (0,), strict=False):
            total += count
            # All at once, up or down: they hold no load before the gate opens.
            rate = max(total, self._runner.user_count, 1)
            self._runner.start(total, rate, user_classes=[user_class])
            if not isinstance(self._runner, MasterRunner) and self._runner.spawning_greenlet is not None:
                self._runner.spawning_greenlet.join()
