"""StudyShape: the base of our locustfiles. Locust's shape greenlet becomes the conductor's."""

from locust import LoadTestShape, events
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import LocalRunner, MasterRunner, Runner, WorkerRunner

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from reports.entry import outlast_output
from swarm.distributed.worker import Worker
from swarm.errors import SwarmError
from swarm.launcher.launch_info import VARIABLE
from swarm.locust_patches.bind_hosts import bind_loopback, for_other_machines, open_listeners
from swarm.locust_patches.patches import keep_run_time_out, tune_locust
from swarm.locust_patches.signals import obey_signals_on_worker, send_workers_home
from swarm.options.parse import add_options
from swarm.plan.matrix import StudyDefinition
from swarm.redaction import guard_output, redact_exceptions
from swarm.study.master import Master
from swarm.targets.endpoints import FIVE
from users.transport.headers import Sender


class StudyShape(StudyDefinition, LoadTestShape):
    """A study as a Locust shape: press Start, or run headless, and its cells are walked one by one.

    A subclass names the study and its sizes; see `locustfiles/step7.py`.
    """

    abstract = True
    endpoints: ClassVar[Sequence[str]] = FIVE
    workers: ClassVar[int] = 1
    """How many worker processes `inferswarm run` starts without --workers."""
    master: Master | None = None

    def tick(self) -> None:
        """Called once by Locust when the test starts: the whole study, from the first cell to the report.

        Locust polls a shape each second to adjust users. Walking the cells inside one call instead costs no
        second at each change of cell, and ends the study before Locust tears the workers down.
        """
        assert self.master is not None, "the init event sets up the master"
        self.master.conduct()


def on_parser(parser: LocustArgumentParser, **_: Any) -> None:
    """Locust builds a parser, before all else: add our options."""
    outlast_output()
    guard_output()
    tune_locust()
    add_options(parser)
    bind_loopback(parser)
    logging.getLogger("locust.main").addFilter(keep_run_time_out)


def on_init(environment: Environment, runner: Runner, web_ui: Any, **_: Any) -> None:
    """Locust has built the runner of this process: make it a worker's, a master's, or both."""
    shape = environment.shape_class
    if not isinstance(shape, StudyShape):
        return
    # Users are held still and drained by us; Locust's own patience would wait for users who wait at the gate.
    environment.stop_timeout = 0
    if isinstance(runner, (WorkerRunner, LocalRunner)):
        worker = Worker(environment, runner)
    if isinstance(runner, WorkerRunner):
        Sender.is_worker = True
        obey_signals_on_worker(environment, runner, worker)
        worker.hello()
    if isinstance(runner, (MasterRunner, LocalRunner)):
        say_who_may_connect(environment)
        redact_exceptions(runner)
        shape.master = Master(environment, runner, web_ui, shape)
        try:
            shape.master.prepare()
        except SwarmError as error:
            print(f"inferswarm: {error}", file=sys.stderr, flush=True)
            send_workers_home(runner)
            sys.exit(2)


def say_who_may_connect(environment: Environment) -> None:
    """Loudly, where other machines may; and what a master needs for that, where they may not."""
    options = environment.parsed_options
    if options is None:
        return
    for sentence in open_listeners(options):
        print(f"inferswarm: WARNING: {sentence}", file=sys.stderr, flush=True)
    if (sentence := for_other_machines(options)) and VARIABLE not in os.environ:
        print(f"inferswarm: {sentence}", file=sys.stderr, flush=True)


events.init_command_line_parser.add_listener(on_parser)
events.init.add_listener(on_init)
