"""Ctrl-C, SIGTERM and SIGHUP: finish what is in flight, keep what was measured, leave nothing behind.

Locust installs its SIGTERM handler only after a headless shape has ended, and lets Ctrl-C raise inside
the greenlet that is running; so both are handled here, from before the servers start.
"""

from locust.env import Environment
from locust.event import EventHook
from locust.runners import Runner

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gevent
import psutil

from swarm.distributed.protocol import PARTING_S
from swarm.distributed.worker import Worker

INTERRUPTED = 3
LINGER_S = 8.0


def to_the_end(work: Callable[[], None]) -> None:
    """Do `work` whole, though this greenlet is killed meanwhile, once or more often: Locust does both."""
    greenlet = gevent.spawn(work)
    while not greenlet.ready():
        try:
            greenlet.join()
        except gevent.GreenletExit:
            continue
    greenlet.get()


def send_workers_home(runner: Runner) -> None:
    """Before leaving early: tell the workers that are connected, and signal those that Locust has forked.

    Locust forgets a forked worker that is still alive when the parent ends; it would wait for a minute.
    """
    # One that has only just come reports without what Locust looks for; nothing that they report now counts.
    runner.environment.events.worker_report = EventHook()
    runner.quit()
    own = psutil.Process()
    for child in own.children():
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile, or has yet to be waited for
            if child.cmdline() == own.cmdline():
                child.send_signal(signal.SIGTERM)


def handle(act: Callable[[], None], *numbers: signal.Signals) -> None:
    """Do this at each of the signals but those that are ignored, as Ctrl-C is in background jobs."""
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            gevent.signal_handler(number, act)


class MasterSignals:
    """The first signal ends the study in order, a second one at once."""

    def __init__(self, environment: Environment, runner: Runner, web_ui: Any) -> None:
        self._runner, self._web_ui = runner, web_ui
        self._main = gevent.getcurrent()
        self.prepared = False
        """Until then a signal ends the process: there is nothing to keep yet."""
        self._signalled = False
        handle(self._on_signal, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        environment.events.quitting.add_listener(self._on_quitting)

    def _on_signal(self) -> None:
        if self._signalled:
            os._exit(INTERRUPTED)
        self._signalled = True
        if not self.prepared or (self._runner.shape_greenlet is None and self._web_ui is None):
            self._leave()
        else:
            text = f"stopping: requests in flight may finish ({PARTING_S:g} s at most); again to stop at once"
            print(text, flush=True)
            self._runner.quit()
            if self._web_ui is not None:
                self._web_ui.stop()

    def _leave(self) -> None:
        print("inferswarm: stopped before the study began", file=sys.stderr, flush=True)
        send_workers_home(self._runner)
        gevent.kill(self._main, SystemExit(INTERRUPTED))

    def _on_quitting(self, **_: Any) -> None:
        """Locust is about to fix its exit code: the study must have ended by then, and have set it."""
        if self._runner.shape_greenlet is not None:
            self._runner.stop()


def obey_signals_on_worker(environment: Environment, runner: Runner, worker: Worker) -> None:
    """On a worker, Ctrl-C drains and ships first; the master, signalled too, mostly says quit by then."""
    signalled: list[bool] = []

    def on_interrupt() -> None:
        if signalled:
            os._exit(INTERRUPTED)
        signalled.append(True)
        worker.part()
        gevent.sleep(LINGER_S)
        runner.quit()

    handle(on_interrupt, signal.SIGINT, signal.SIGHUP)
    environment.events.quitting.add_listener(lambda **_: worker.flush())
