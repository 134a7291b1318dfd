"""The master's side of a study: servers, targets and pictures before it, its ledger and report after it."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import MasterRunner, Runner

import atexit
import logging
import time
from pathlib import Path
from typing import Any

import gevent

from reports.ledger import FILE_NAME, LedgerWriter
from swarm import rendering
from swarm.collector import Collector
from swarm.conductor import PREPARE_S, Conductor, Hands
from swarm.crew import Crew
from swarm.embedded import EmbeddedServers
from swarm.errors import StudyError, SwarmError, UsageError
from swarm.folder import header, make_folder, new_folder, utc_now
from swarm.golden import check_agreement, golden_embeddings
from swarm.options import Options, resolve
from swarm.plan import Run, Study, order
from swarm.preflight import check_targets
from swarm.probe import read_counters
from swarm.quiet import hush_locust
from swarm.signals import MasterSignals
from swarm.targets import endpoints_from_options, endpoints_from_ready
from swarm.worker import user_class_for
from users.endpoint import Endpoint
from users.images import ImageSet, ImageSetError, load_images
from users.transport import Transport

WORKERS_S = 60.0
SPAWN_RATE = 100
"""Users a second, up and down: the most that Locust takes without a warning."""
PASSED, FAILED, USAGE, INCONCLUSIVE = 0, 1, 2, 3


logger = logging.getLogger("inferswarm")


class Master:
    """One for a process: `prepare` once, `conduct` for every press of Start."""

    images: ImageSet
    endpoints: list[Endpoint]

    def __init__(self, environment: Environment, runner: Runner, web_ui: Any, study: Study) -> None:
        self._environment, self._runner, self._study = environment, runner, study
        self._crew = Crew(runner)
        self._collector = Collector(runner, self._crew.name)
        self._servers = EmbeddedServers(self._say)
        self._ready: dict[str, Any] = {}
        self._closing_text = ""
        self._signals = MasterSignals(environment, runner, web_ui)
        atexit.register(self._servers.stop)
        environment.events.quit.add_listener(self._show_closing_text)
        hush_locust(environment)

    def prepare(self) -> None:
        """Everything that must be right before any load. Raises UsageError with one sentence."""
        options = resolve(self._environment.parsed_options)
        make_folder(Path(options.results_dir))
        try:
            self.images = load_images(options.images)
        except ImageSetError as error:
            raise UsageError(str(error)) from error
        with self._signals.preparing():
            self.endpoints = (
                self._start_servers(options) if options.embedded else endpoints_from_options(options)
            )
            transports = [self._transport(endpoint) for endpoint in self.endpoints]
            firsts = check_targets(self.endpoints, transports, self.images)
            check_agreement(self.endpoints[0].name, firsts, options.min_cosine)
        for user_class in self._environment.user_classes:
            # Locust's page asks for a host where a class has none; ours go to endpoints.
            user_class.host = ", ".join(f"{e.name} at {e.address}" for e in self.endpoints)
        self._say(f"targets: {self._environment.user_classes[0].host}")

    def _start_servers(self, options: Options) -> list[Endpoint]:
        arguments = ["--pretrained", options.pretrained] if options.pretrained else []
        arguments += ["--only", "pytorch,onnx"] if options.skip_trt else []
        self._ready = self._servers.start(arguments)
        return endpoints_from_ready(self._ready, options.skip_trt)

    def conduct(self) -> None:
        """One study, from its folder to its report; killed by a stop, it still ends in order."""
        try:
            options = resolve(self._environment.parsed_options)
            size = self._study.sizes[options.size].with_amounts(options.iterations, options.seconds)
            runs = order(self._study.cells(self.endpoints, size), options.repeats, options.seed)
            folder = new_folder(Path(options.results_dir), self._study.name)
        except UsageError as error:
            self._say(f"inferswarm: {error}")
            self._environment.process_exit_code = USAGE
            return
        ledger = LedgerWriter(folder / FILE_NAME)
        ledger.write(
            header(self._study, options.resolved(size), runs, self.endpoints, self.images, self._ready)
        )
        conductor = Conductor(self._hands(ledger), runs, options.request_timeout)
        status, reason = "interrupted", "stopped before its end"
        try:
            self._begin(options, ledger, folder, runs)
            conductor.walk()
            status, reason = "complete", ""
        except SwarmError as error:
            status, reason = "failed", str(error)
            self._say(f"inferswarm: {error}")
        finally:
            conductor.abort(reason or status)
            self._end(ledger, status, reason)
            whole = status == "complete" and not conductor.unfinished
            self._environment.process_exit_code = self._verdict(whole, options.max_failure_ratio)
            self._servers.copy_logs(folder / "logs")
            self._render(folder)

    def _begin(self, options: Options, ledger: LedgerWriter, folder: Path, runs: list[Run]) -> None:
        """Wait for a worker, fetch the golden embeddings, and give every worker what it needs."""
        self._collector.begin_study(ledger)
        deadline = time.monotonic() + WORKERS_S
        while not self._crew.workers():
            if time.monotonic() > deadline:
                raise StudyError("no worker has connected; start one with --worker")
            gevent.sleep(0.1)
        count = len(self._crew.workers())
        self._say(
            f"{self._study.title}: {len(runs)} runs ({options.size}), {count} worker(s), results in {folder}/"
        )
        first = self.endpoints[0]
        golden = golden_embeddings(first, self._transport(first), self.images, options.request_timeout)
        study = {
            "images": options.images,
            "golden": golden.tobytes(),
            "min_cosine": options.min_cosine,
            "timeout_s": options.request_timeout,
        }
        answers = self._crew.ask("study", study, PREPARE_S)
        if answers.errors or not answers.replies:
            raise StudyError("; ".join(answers.errors) or "no worker took the study")
        for worker, reply in answers.replies.items():
            if reply["sha256"] != self.images.sha256:
                raise StudyError(f"worker {self._crew.name(worker)} has other pictures; copy them there")

    def _end(self, ledger: LedgerWriter, status: str, reason: str) -> None:
        self._crew.forget()
        self._collector.end_study()
        ledger.write({"kind": "footer", "status": status, "reason": reason, "utc": utc_now()})
        ledger.sync()
        ledger.close()

    def _verdict(self, whole: bool, max_failure_ratio: float) -> int:
        """The exit code: without all the data there is neither a pass nor a fail."""
        requests, failures = self._collector.requests, self._collector.failures
        if not whole or not requests:
            return INCONCLUSIVE
        return PASSED if failures <= max_failure_ratio * requests else FAILED

    def _render(self, folder: Path) -> None:
        self._closing_text = rendering.show(folder)
        if self._environment.web_ui is not None:
            self._show_closing_text()

    def _show_closing_text(self, **_: Any) -> None:
        """Headless, last of all, after Locust's own tables, so that ours stand at the end of the screen."""
        if self._closing_text:
            print(self._closing_text, flush=True)
            self._closing_text = ""

    def _say(self, text: str) -> None:
        """A line for the person: on the console, or where the page's Logs tab shows it too."""
        if self._environment.web_ui is None:
            print(text, flush=True)
        else:
            logger.info(text)

    def _hands(self, ledger: LedgerWriter) -> Hands:
        return Hands(
            crew=self._crew,
            collector=self._collector,
            ledger=ledger,
            spawn=self._spawn,
            probe=read_counters,
            server_fault=self._servers.fault,
            say=self._say,
            clock=time.monotonic,
            sleep=gevent.sleep,
        )

    def _spawn(self, count: int, endpoint: Endpoint) -> None:
        """Bring the users of the endpoint's class to `count`, and wait until they are there."""
        user_class = user_class_for(endpoint, self._environment.user_classes)
        self._runner.start(count, SPAWN_RATE, user_classes=[user_class])
        if not isinstance(self._runner, MasterRunner) and self._runner.spawning_greenlet is not None:
            self._runner.spawning_greenlet.join()

    def _transport(self, endpoint: Endpoint) -> type[Transport]:
        return user_class_for(endpoint, self._environment.user_classes).transport
