"""The master's side of a study: servers, targets and pictures before it; its folder, ledger and report."""

from __future__ import annotations

from locust.env import Environment
from locust.runners import MasterRunner, Runner

import atexit
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
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
from swarm.fingerprint import fingerprint
from swarm.golden import check_agreement, golden_embeddings
from swarm.options import Options, resolve
from swarm.plan import Cell, Run, Size, order
from swarm.preflight import check_targets
from swarm.probe import read_counters
from swarm.quiet import hush_locust
from swarm.signals import MasterSignals
from swarm.targets import endpoints_from_options, endpoints_from_ready
from swarm.worker import user_class_for
from users.endpoint import Endpoint
from users.images import ImageSet, ImageSetError, load_images

WORKERS_S = 60.0
SPAWN_RATE = 100
"""Users a second, up and down: the most that Locust takes without a warning."""
PASSED, FAILED, INCONCLUSIVE = 0, 1, 3


def say(text: str) -> None:
    """A line for the person at the console."""
    print(text, flush=True)


class Master:
    """One for a process: `prepare` once, `conduct` for every press of Start."""

    images: ImageSet
    endpoints: list[Endpoint]

    def __init__(
        self,
        environment: Environment,
        runner: Runner,
        web_ui: Any,
        name: str,
        title: str,
        sizes: Mapping[str, Size],
        cells: Callable[[Sequence[Endpoint], Size], list[Cell]],
    ) -> None:
        self._environment, self._runner = environment, runner
        self._name, self._title, self._sizes, self._cells = name, title, sizes, cells
        self._crew = Crew(runner)
        self._collector = Collector(runner, self._crew.name)
        self._servers = EmbeddedServers(say)
        self._ready: dict[str, Any] = {}
        self._closing_text = ""
        self._signals = MasterSignals(environment, runner, web_ui, self._servers)
        atexit.register(self._servers.stop)
        environment.events.quit.add_listener(self._on_quit)
        hush_locust(environment)

    def prepare(self) -> None:
        """Everything that must be right before any load. Raises UsageError with one sentence."""
        options = resolve(self._environment.parsed_options)
        try:
            self.images = load_images(options.images)
        except ImageSetError as error:
            raise UsageError(str(error)) from error
        with self._signals.preparing():
            if options.embedded:
                arguments = ["--pretrained", options.pretrained] if options.pretrained else []
                skipped = ["--only", "pytorch,onnx"] if options.skip_trt else []
                self._ready = self._servers.start([*arguments, *skipped])
                self.endpoints = endpoints_from_ready(self._ready, options.skip_trt)
            else:
                self.endpoints = endpoints_from_options(options)
            self._check(options)
        names = ", ".join(f"{endpoint.name} at {endpoint.address}" for endpoint in self.endpoints)
        say(f"targets: {names}")

    def _check(self, options: Options) -> None:
        firsts = check_targets(self.endpoints, [self._transport(e) for e in self.endpoints], self.images)
        check_agreement(self.endpoints[0].name, firsts, options.min_cosine)

    def _transport(self, endpoint: Endpoint) -> Any:
        return user_class_for(endpoint, self._environment.user_classes).transport

    def conduct(self) -> None:
        """One study, from its folder to its report; killed by a stop, it still ends in order."""
        try:
            options = resolve(self._environment.parsed_options)
            size = self._sizes[options.size]
        except UsageError as error:
            say(f"inferswarm: {error}")
            return
        sized = size.with_amounts(options.iterations, options.seconds)
        runs = order(self._cells(self.endpoints, sized), options.repeats, options.seed)
        folder = new_folder(Path(options.results_dir), self._name)
        ledger = LedgerWriter(folder / FILE_NAME)
        ledger.write(self._header(options, runs))
        conductor = Conductor(self._hands(ledger), runs, options.request_timeout_s)
        status, reason = "interrupted", "stopped before its end"
        try:
            self._begin(options, ledger, folder, runs)
            conductor.walk()
            status, reason = "complete", ""
        except SwarmError as error:
            status, reason = "failed", str(error)
            say(f"inferswarm: {error}")
        finally:
            self._end(conductor, ledger, folder, status, reason, options.max_failure_ratio)

    def _begin(self, options: Options, ledger: LedgerWriter, folder: Path, runs: list[Run]) -> None:
        self._collector.begin_study(ledger)
        deadline = time.monotonic() + WORKERS_S
        while not self._crew.workers():
            if time.monotonic() > deadline:
                raise StudyError("no worker has connected; start one with --worker")
            gevent.sleep(0.1)
        count = len(self._crew.workers())
        say(f"{self._title}: {len(runs)} cells ({options.size}), {count} worker(s), results in {folder}/")
        golden = golden_embeddings(
            self.endpoints[0], self._transport(self.endpoints[0]), self.images, options.request_timeout_s
        )
        study = {
            "images": options.images,
            "golden": golden.tobytes(),
            "min_cosine": options.min_cosine,
            "timeout_s": options.request_timeout_s,
        }
        answers = self._crew.ask("study", study, PREPARE_S)
        if answers.errors or not answers.replies:
            raise StudyError("; ".join(answers.errors) or "no worker took the study")
        for worker, reply in answers.replies.items():
            if reply["sha256"] != self.images.sha256:
                raise StudyError(f"worker {self._crew.name(worker)} has other pictures; copy them there")

    def _end(
        self,
        conductor: Conductor,
        ledger: LedgerWriter,
        folder: Path,
        status: str,
        reason: str,
        allowed: float,
    ) -> None:
        """Whatever happened: end the run under way, close the ledger, write the report, set the exit code."""
        conductor.abort(reason or status)
        self._crew.forget()
        self._collector.end_study()
        ledger.write({"kind": "footer", "status": status, "reason": reason, "utc": utc_now()})
        ledger.sync()
        ledger.close()
        collector = self._collector
        whole = status == "complete" and not conductor.unfinished and collector.requests > 0
        within = collector.failures <= allowed * collector.requests
        self._environment.process_exit_code = INCONCLUSIVE if not whole else PASSED if within else FAILED
        self._closing_text = rendering.show(folder)
        if self._environment.web_ui is not None:
            self._on_quit()

    def _on_quit(self, **_: Any) -> None:
        """Last of all, after Locust's own tables, so that ours stand at the end of the screen."""
        if self._closing_text:
            say(self._closing_text)
            self._closing_text = ""

    def _hands(self, ledger: LedgerWriter) -> Hands:
        return Hands(
            crew=self._crew,
            collector=self._collector,
            ledger=ledger,
            spawn=self._spawn,
            probe=read_counters,
            check_server=self._servers.check,
            say=say,
            clock=time.monotonic,
            sleep=gevent.sleep,
        )

    def _spawn(self, count: int, endpoint: Endpoint) -> None:
        """Bring the users of the endpoint's class to `count`, and wait until they are there."""
        user_class = user_class_for(endpoint, self._environment.user_classes)
        self._runner.start(count, SPAWN_RATE, user_classes=[user_class])
        if not isinstance(self._runner, MasterRunner) and self._runner.spawning_greenlet is not None:
            self._runner.spawning_greenlet.join()

    def _header(self, options: Options, runs: list[Run]) -> dict[str, Any]:
        weights = self._ready.get("weights", "unknown")
        return {
            "kind": "header",
            "version": 1,
            "study": self._name,
            "title": self._title,
            "size": options.size,
            "started_utc": utc_now(),
            "plan": [run.to_record() for run in runs],
            "options": options.to_record(),
            "fingerprint": fingerprint(),
            "images": {
                "count": len(self.images),
                "source": self.images.source,
                "jpeg_bytes_mean": self.images.mean_jpeg_bytes,
                "sha256": self.images.sha256,
            },
            "endpoints": {
                endpoint.name: {
                    "url": endpoint.address,
                    "model": endpoint.model or self._ready.get("model", ""),
                    "weights": weights,
                    "embedded": options.embedded,
                }
                for endpoint in self.endpoints
            },
        }


def new_folder(parent: Path, name: str) -> Path:
    """`<parent>/<name>-<UTC time>/`, new. Raises UsageError where it cannot be made."""
    folder = parent / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        (folder / "logs").mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"--results-dir {parent}: cannot make {folder} ({error.strerror})") from error
    return folder


def utc_now() -> str:
    """ISO 8601 with a Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
