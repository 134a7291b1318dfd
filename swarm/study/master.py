"""The master's side of a study: servers, targets and pictures before it, its ledger and report after it."""

from locust.env import Environment
from locust.runners import MasterRunner, Runner

import argparse
import atexit
import functools
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import gevent

from reports.fold.server import SEVERAL
from reports.format import plain_lines, plural
from reports.ledger.ledger import LedgerWriter
from swarm.distributed.collector import Collector
from swarm.distributed.workers import Workers
from swarm.errors import SwarmError, TimeIsOverError, UsageError
from swarm.events import StudyEnded
from swarm.exporters.exporters import open_exporters
from swarm.launcher.launch_info import LaunchInfo, as_typed
from swarm.locust_patches.patches import follow_study, hush_locust
from swarm.locust_patches.signals import MasterSignals, to_the_end
from swarm.options.model import Options
from swarm.options.parse import changes, resolve
from swarm.output.dispatch import Dispatcher
from swarm.output.gate import Gate
from swarm.output.results_folder import header, make_folder, new_folder, open_ledger, remove_if_refused
from swarm.output.run_fold import RunFold
from swarm.plan.cell import Cell
from swarm.plan.estimate import in_words, shorten
from swarm.plan.matrix import Size, StudyDefinition
from swarm.plan.schedule import Schedule, painted
from swarm.redaction import guard_output
from swarm.sampling.kubernetes import NO_COUNTERS, cluster_of
from swarm.sampling.machine import ServerMemory
from swarm.sampling.sampler import GpuSources, Sampler, open_sources
from swarm.sampling.triton_trace import TraceReader
from swarm.study.build_schedule import check_cells, schedule_of, varies_servers
from swarm.study.conductor import Conductor
from swarm.study.dependencies import Dependencies, Users
from swarm.study.finish import INCONCLUSIVE, USAGE, StudyEnd
from swarm.study.handout import check_reach, hand_out, wait_for_workers
from swarm.study.run_phases import Terms
from swarm.targets.discover import own_endpoints
from swarm.targets.embedded import profile_argv, profile_operators, wants_profile
from swarm.targets.endpoints import check_metrics, chosen, dcgm_url, metrics_addresses, possible
from swarm.targets.golden import from_file
from swarm.targets.model_settings import ModelControl
from swarm.targets.request_forms import RequestForms
from swarm.targets.servers import Servers, caveats_of, elsewhere
from users.backends.asking import read_counters, read_serving
from users.endpoint import Endpoint
from users.inputs.images import ImageSet, load_images
from users.inputs.pictures import ImageSetError
from users.refusals import patient

if TYPE_CHECKING:
    # A headless study imports nothing of the page.
    from swarm.web.form import StartForm
    from swarm.web.page import LivePage

logger = logging.getLogger("inferswarm")
NOTHING = "none"
"""A value of --emulate: real models, for a study that emulates by default."""


def emulation(asked: str, own: str) -> str:
    """What embedded servers emulate: what --emulate asks for, or the study's own; nothing for `none`."""
    return "" if asked == NOTHING else asked or own


class Master:
    """One for a process: `prepare` once, `conduct` for every press of Start."""

    _options: Options
    images: ImageSet

    def __init__(self, environment: Environment, runner: Runner, web_ui: Any, study: StudyDefinition) -> None:
        self._environment, self._runner, self._study = environment, runner, study
        self._workers = Workers(runner, self._say)
        self._collector = Collector(runner, self._workers.name)
        self._users = Users(environment, runner)
        self._servers = Servers(self._say)
        self._control, self._forms = ModelControl(self._say), RequestForms()
        self._launch = LaunchInfo.of(os.environ)
        self._exporters: list[object] = []
        self._closing_text = ""
        self._elsewhere: dict[str, str] = {}
        """Endpoints with another address for some workers, and that address."""
        self._page = live_page(web_ui)
        if self._page:
            self._page.form = self._start_form()
        self._gate = Gate(self._say)
        self._fold = RunFold()
        self._fold.listeners.append(lambda second: self._gate.on_second(second))
        self._events = Dispatcher(self._fold, self._say)
        self._collector.listeners.append(self._events.on_record)
        self._collector.on_traced = self._events.on_traced
        follow_study(environment, self._collector.listeners)
        self._signals = MasterSignals(environment, runner, web_ui)
        if web_ui is None or vars(environment.parsed_options)["autostart"]:
            # Until a study has come to its end.
            environment.process_exit_code = INCONCLUSIVE
        atexit.register(self._servers.embedded.stop)
        atexit.register(self._forms.close)  # before it: the last comes first
        environment.events.quit.add_listener(self._show_closing_text)
        hush_locust(environment)

    def prepare(self) -> None:
        """All checks before any load. Raises UsageError with one sentence."""
        options = self._options = self._resolved()
        # First: standard output may be for an exporter alone.
        self._exporters = open_exporters(options)
        # Refused before servers start; every press of Start reads it again.
        Gate.of(options, self._say)
        self._launch.check_links(options.links)
        own = own_endpoints(options)
        guard_output()
        asked = chosen(self._study.endpoints, options, own)
        make_folder(Path(options.results_dir))
        try:
            self.images = load_images(options.images, options.texts, options.pool_bytes, options.kinds)
        except ImageSetError as error:
            raise UsageError(str(error)) from error
        if self.images.left_out:
            self._say(f"--images: of its files these are left out: {self.images.left_out}")
        with patient(self._say):
            check_metrics(options.urls, options.security, options.dcgm_metrics_url)
        if self._environment.web_ui is None:
            check_cells(self._study, possible(asked, options), options)
        # From the page, another study's settings may be asked for at any time.
        varied = self._environment.web_ui is not None or varies_servers(self._study, asked, options)
        self._cluster = cluster_of(options, self._say)
        with patient(self._say):
            self._servers.prepare(options, asked, self.images, self._launch, varied)
        if options.golden:  # every press of Start reads it again
            from_file(options.golden, self._servers.endpoints)
        for user_class in self._environment.user_classes:
            # Locust's page asks for a host where a class has none; ours go to endpoints.
            user_class.host = ", ".join(f"{e.name} at {e.shown}" for e in self._servers.endpoints)
        metrics = metrics_addresses(options.urls, self._servers.ready)
        place = self._launch.server_address
        sources = functools.partial(
            open_sources, metrics=metrics, namespace=place, cluster=self._cluster, gpus=self._gpu_sources()
        )
        self._sampler = Sampler(self._collector.write, sources)
        self._signals.prepared = True
        if self._page:
            self._say(f"plan, start and follow the study at {self._page.url}")

    def _gpu_sources(self) -> GpuSources:
        """What is known of where the servers' GPUs are."""
        options, servers = self._options, self._servers
        started = servers.ready.get("endpoints", {})
        return GpuSources(
            here=[name for name, here in servers.here.items() if here],
            pids={name: server["pid"] for name, server in started.items() if "pid" in server},
            dcgm=dcgm_url(options.dcgm_metrics_url),
            security=options.security,
        )

    def _start_form(self) -> "StartForm":
        """What the page's form asks for, and the plan of a filled one."""
        from swarm.web.form import OUTPUT, TARGETS, StartForm, written

        def facts() -> dict[str, list[str]]:
            targets = [f"{endpoint.name} at {endpoint.shown}" for endpoint in self._servers.endpoints]
            return {TARGETS: targets, OUTPUT: written(self._options)}

        return StartForm(lambda: self._environment.parsed_options, facts, self._plan)

    def _plan(self, form: Mapping[str, str]) -> tuple[str, Size]:
        """What a study with these options would do. Raises UsageError; servers are asked nothing."""
        options = self._resolved(form)
        gate = Gate.of(options, lambda _: None)  # asked at every pause of typing: nothing is logged
        schedule, size = self._schedule(replace(options, baseline=gate.baseline), gate)
        return in_words(schedule.planned, size.warm_up, self._page.pace_s if self._page else None), size

    def _resolved(self, form: Mapping[str, str] = MappingProxyType({})) -> Options:
        """The options as they stand, or a form changes them; embedded servers emulate what the study says.

        Raises UsageError.
        """
        options = resolve(argparse.Namespace(**{**vars(self._environment.parsed_options), **form}))
        stand_in = self._study.emulate if options.embedded else ""
        return replace(options, emulate=emulation(options.emulate, stand_in))

    def conduct(self) -> None:
        """One study, from its folder to its report; if a stop kills it, it still ends in order."""
        self._environment.process_exit_code = INCONCLUSIVE
        try:
            options, schedule, size = self._planned()
            head = self._header(options, schedule, size)
            # From here to the study's end nothing waits, and so nothing kills this in between.
            folder = new_folder(Path(options.results_dir), self._study.name)
            with remove_if_refused(folder):
                self._gate.keep(folder)
                ledger = open_ledger(folder, head)
        except UsageError as error:
            self._say(f"inferswarm: {error}")
            if self._page:
                self._page.refused(str(error))
            self._environment.process_exit_code = USAGE
            return
        own_listeners: list[object] = [self._page.begun(folder, head)] if self._page else []
        conductor = Conductor(
            self._dependencies(), schedule, Terms(options.request_timeout, size.warm_up, options.seed)
        )
        own, logs, ratio = self._servers.embedded, self._launch.logs, options.max_failure_ratio
        end = StudyEnd(
            *(conductor, self._collector, ledger, folder, own, self._say, ratio, self._gate, self._events),
            worker_logs=logs,
            tables=options.tables,
        )
        status, reason = "interrupted", "stopped before its end"
        try:
            with gevent.Timeout(self._run_time_s(), TimeIsOverError("--run-time is over")):
                self._events.begin(head, [*own_listeners, *self._exporters])
                self._begin(options, ledger, folder, schedule, size)
                self._profile_operators(options, size)
                conductor.walk()
            status, reason = "complete", ""
        except TimeIsOverError as over:
            reason = str(over)
        except (SwarmError, OSError) as error:
            status, reason = "failed", str(error)
            self._say(f"inferswarm: {error}")
        except Exception as error:
            status, reason = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            to_the_end(lambda: self._end(end, status, reason))

    def _planned(self) -> tuple[Options, Schedule, Size]:
        """What this press of Start asks for, judged by the gate as it is now. Raises UsageError."""
        options = self._resolved()
        gate = self._gate = Gate.of(options, self._say)
        options = replace(options, baseline=gate.baseline)
        return options, *self._schedule(options, gate, self._check_servers, self._say)

    def _check_servers(self, cells: Sequence[Cell]) -> None:
        """They can be set as cells say, and take what cells send. Raises UsageError."""
        with patient(self._say):
            self._control.check(cells)
            self._forms.check(cells, self.images)

    def _set_up(self, cell: Cell) -> Sequence[Endpoint]:
        """What a run of a cell needs of its server; the endpoints whose models were loaded again."""
        loaded = self._control.apply(cell)
        self._forms.apply(cell, self.images)
        return loaded

    def _schedule(
        self, options: Options, gate: Gate, *check_and_say: Callable[..., None]
    ) -> tuple[Schedule, Size]:
        """As `schedule_of`, with this process's workers and servers. Raises UsageError."""
        workers = self._launch.workers if isinstance(self._runner, MasterRunner) else 1
        endpoints = self._servers.endpoints
        return schedule_of(self._study, endpoints, options, self._launch, gate, workers, *check_and_say)

    def _dependencies(self) -> Dependencies:
        """What the conductor acts through; several replicas have no counters in common."""
        servers, uncounted = self._servers, {"error": NO_COUNTERS, "error_kind": SEVERAL}
        return Dependencies(
            workers=self._workers,
            collector=self._collector,
            fold=self._fold,
            sampler=self._sampler,
            spawn=self._users.spawn,
            probe=(lambda _: uncounted) if self._cluster else read_counters,
            serving=read_serving,
            traced=TraceReader(servers.ready, self._collector).joined,
            first_calls=servers.first_calls,
            server_fault=servers.embedded.fault,
            addresses=self._launch.addresses_of,
            stopped=self._gate.stopped,
            say=self._say,
            set_up=self._set_up,
            caveats_of=lambda endpoint: caveats_of(endpoint, self._elsewhere),
            memory=ServerMemory(servers.ready).read,
        )

    def _header(self, options: Options, schedule: Schedule, size: Size) -> dict[str, Any]:
        """With which the study's ledger begins."""
        began = self._launch.command or as_typed(sys.argv)
        command = [*began, *changes(self._options, options)]
        about, runs = options.resolved(size), schedule.planned
        head = header(self._study, about, command, runs, self.images, self._servers)
        return {**head, **self._launch.facts(head["fingerprint"])}

    def _begin(
        self, options: Options, ledger: LedgerWriter, folder: Path, schedule: Schedule, amounts: Size
    ) -> None:
        """From workers that are there to workers that have all they need."""
        self._collector.begin_study(ledger, options.raw_results)
        count = wait_for_workers(self._workers, self._say, self._launch.workers)
        self._launch.tell_begun()
        # From here on Locust's state says that a test is on, so that Stop and Ctrl-C reach this greenlet.
        self._users.spawn(0)
        runs = in_words(schedule.planned, amounts.warm_up)
        size = f"{runs} ({options.size}), {plural(count, 'worker')}"
        self._say(f"{self._study.title}: {size}, results in {folder}/")
        if advice := shorten(schedule.planned, amounts.warm_up):
            self._say(advice)
        hand_out(self._workers, self._servers.endpoints, self.images, options, self._say)
        told = check_reach(self._workers, self._servers.endpoints, self._launch.ways(options.links))
        here = {name: target["resolved"] for name, target in self._servers.targets.items()}
        self._elsewhere = elsewhere(here, told)

    def _profile_operators(self, options: Options, size: Size) -> None:
        """Where the study asks for it; one that fails is told in the report, and ends nothing."""
        if wants_profile(self._study, options, self._servers.ready):
            self._say("profiling the operators of the ONNX engine, before any load")
            self._collector.write(profile_operators(profile_argv(options, size, self._servers.ready)))

    def _run_time_s(self) -> float | None:
        """Locust's --run-time, which it leaves to shapes."""
        options = self._environment.parsed_options
        return options.run_time if options else None

    def _end(self, end: StudyEnd, status: str, reason: str) -> None:
        """The report, and the exit code, which stays inconclusive if anything here goes wrong."""
        try:
            self._closing_text, code = end.close(status, reason)
        finally:
            self._control.restore()
            self._forms.close()
        if self._page:
            self._page.ended(status, reason, code)
        self._workers.forget()
        self._environment.process_exit_code = code
        self._events.ended(StudyEnded(self._study.name, end.folder, status, reason, code))
        if self._environment.web_ui is not None:
            self._show_closing_text()

    def _show_closing_text(self, **_: Any) -> None:
        """Headless, at the very end, after Locust's own tables, so that ours are last on the screen."""
        if self._closing_text:
            print(self._closing_text, flush=True)
            self._closing_text = ""

    def _say(self, text: str) -> None:
        """A line for the person: on the console, or where the page's Logs tab shows it too.

        It may contain texts from servers and workers, and terminals interpret control characters.
        """
        if self._environment.web_ui is None:
            shown = plain_lines(text)
            print(painted(shown) if sys.stdout.isatty() else shown, flush=True)
        else:
            logger.info(text)


def live_page(web_ui: Any) -> "LivePage | None":
    """That of this web UI, if there is one."""
    if web_ui is None:
        return None
    from swarm.web.page import open_page

    return open_page(web_ui)
