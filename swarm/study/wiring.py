"""The conductor's dependencies in a real study, and the users, whom Locust's runner brings."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import MasterRunner, Runner

import time
from collections.abc import Callable

import gevent

from swarm.backends.server_info import read_serving
from swarm.backends.statistics import read_counters
from swarm.distributed.collector import Collector
from swarm.distributed.worker_cell import user_class_for
from swarm.distributed.workers import Workers
from swarm.launcher.manifest import LaunchManifest
from swarm.sampling.sampler import Sampler
from swarm.sampling.server_memory import ServerMemory
from swarm.sampling.triton_trace import TraceReader
from swarm.study.dependencies import Dependencies
from swarm.targets.model_settings import ModelControl
from swarm.targets.servers import Servers
from users.endpoint import Endpoint
from users.transport.base import Transport


class Users:
    """Those of the runner, by the user classes of the environment."""

    def __init__(self, environment: Environment, runner: Runner) -> None:
        self._environment, self._runner = environment, runner

    def spawn(self, count: int, endpoint: Endpoint) -> None:
        """Bring the users of the endpoint's class to `count`, and wait until they are there."""
        user_class = user_class_for(endpoint, self._environment.user_classes)
        # All at once, up or down: they hold no load before the gate opens.
        rate = max(count, self._runner.user_count, 1)
        self._runner.start(count, rate, user_classes=[user_class])
        if not isinstance(self._runner, MasterRunner) and self._runner.spawning_greenlet is not None:
            self._runner.spawning_greenlet.join()

    def transport(self, endpoint: Endpoint) -> type[Transport]:
        """How requests to an endpoint are sent."""
        return user_class_for(endpoint, self._environment.user_classes).transport


def dependencies_of(
    users: Users,
    workers: Workers,
    collector: Collector,
    sampler: Sampler,
    servers: Servers,
    launch: LaunchManifest,
    control: ModelControl,
    stopped: Callable[[], str],
    say: Callable[[str], None],
) -> Dependencies:
    """The conductor's deps in a real study."""
    return Dependencies(
        workers=workers,
        collector=collector,
        sampler=sampler,
        spawn=users.spawn,
        probe=read_counters,
        serving=read_serving,
        traced=TraceReader(servers.ready, collector).joined,
        first_calls=servers.first_calls,
        server_fault=servers.embedded.fault,
        addresses=launch.addresses_of,
        stopped=stopped,
        say=say,
        clock=time.monotonic,
        sleep=gevent.sleep,
        set_up=control.apply,
        memory=ServerMemory(servers.ready).read,
    )
