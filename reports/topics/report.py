"""The page that all renderers print: what was found, the tables, where the numbers come from."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reports.format import plural
from reports.gates.verdict import Verdict
from reports.page.chart import Chart
from reports.page.table import Table
from reports.published_figures.backends import batches_beside, single_images_beside
from reports.published_figures.growth import costs_beside, growth_beside
from reports.published_figures.rates import latencies_beside, published_figures, rates_beside
from reports.published_figures.ratios import serial_ratios
from reports.published_figures.table import hypotheses_table
from reports.study.study_reports import Study, notices
from reports.topics.autoscaling.chart import autoscaling_charts
from reports.topics.autoscaling.tables import autoscaling_tables
from reports.topics.contention.tables import contention_tables
from reports.topics.contention.verdict import verdicts as verdicts_on_arms
from reports.topics.findings import findings
from reports.topics.gates import gate_tables, gates_finding
from reports.topics.gates_charts import gates_chart
from reports.topics.load.cost import cost_table
from reports.topics.load.curves import curves_chart
from reports.topics.load.open_load import open_load
from reports.topics.load.queue_delay_tables import best_delays, queue_delays
from reports.topics.load.rate_search import find_bound
from reports.topics.load.rates import highest_rates
from reports.topics.load.scaling_tables import scaling_table, usl_table
from reports.topics.load.wire_tables import wire_ceilings
from reports.topics.payloads.floors import floors
from reports.topics.payloads.matrix import seed_tables
from reports.topics.payloads.payloads import payloads_map
from reports.topics.payloads.protocols import protocols_map
from reports.topics.payloads.serialisation_tables import serialisation_tables
from reports.topics.runs.health import generator_health
from reports.topics.runs.links import hosts, links
from reports.topics.runs.origins import endpoints, fingerprint, images, options
from reports.topics.runs.path import connections_and_path
from reports.topics.runs.runs import caveats_by_code, caveats_by_run, every_run, failures_by_kind
from reports.topics.runs.timeline import timeline_chart
from reports.topics.runs.workers import per_worker
from reports.topics.servers.breakdown import in_the_way, where_the_time_goes
from reports.topics.servers.breakdown_charts import breakdown_chart
from reports.topics.servers.cold_start import cold_starts
from reports.topics.servers.memory import memory_by_run, memory_table
from reports.topics.servers.operators import operator_tables
from reports.topics.servers.trace import traced_requests

LONG = 24
"""Rows; a table with more is opened on demand."""


@dataclass(frozen=True)
class Section:
    """Charts and tables under one heading; the tables of a brief one are also printed on the console.

    Where a section is paired, its narrow tables stand side by side.
    """

    heading: str
    tables: tuple[Table, ...]
    brief: bool
    charts: tuple[Chart, ...] = ()
    paired: bool = False


@dataclass(frozen=True)
class Page:
    """A study as readers see it, in reading order."""

    title: str
    facts: str
    notices: tuple[str, ...]
    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[str, ...]


def build_page(
    study: Study, place: str, usd_per_hour: float | None = None, verdicts: Sequence[Verdict] = ()
) -> Page:
    """Everything a report of the study in `place` says; empty charts, tables and sections are left out."""
    judged = bool(verdicts)
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        notices=tuple(notices(study)),
        findings=(*([gates_finding(verdicts)] if judged else []), *findings(study)),
        sections=(*([gates_section(verdicts)] if judged else []), *filled(sections(study))),
        commands=(*commands(study, place, usd_per_hour), *([gate_command(place)] if judged else [])),
    )


def gates_section(verdicts: Sequence[Verdict]) -> Section:
    """Where some verdicts stand; what did not pass is never folded, however long."""
    others, passed = gate_tables(verdicts)
    tables = (others, replace(passed, folded=len(passed.rows) > LONG))
    shown = tuple(table for table in tables if table.rows)
    return Section("Gates", shown, brief=True, charts=drawn(gates_chart(verdicts)))


def sections(study: Study) -> Iterator[Section]:
    """All of them in reading order, filled or not: what came out, why, what to doubt, what it ran on."""
    limits = (in_the_way(study), where_the_time_goes(study))
    growth = (usl_table(study), scaling_table(study))
    load = (*growth, wire_ceilings(study), cost_table(study), costs_beside(study))
    workers = (per_worker(study), generator_health(study), connections_and_path(study))
    each_run = (every_run(study), traced_requests(study))
    doubts = (caveats_by_code(study), failures_by_kind(study), caveats_by_run(study))
    origins = (
        endpoints(study),
        images(study),
        links(study),
        hosts(study),
        options(study),
        fingerprint(study),
    )
    yield Section("Results", tuple(results(study)), brief=True, paired=True)
    yield Section("Serialisation", tuple(serialisation_tables(study)), brief=True)
    yield Section("Operators", tuple(operator_tables(study)), brief=False, paired=True)
    yield Section("Where the time goes", limits, brief=True, charts=drawn(breakdown_chart(study)))
    yield Section("Load and cost", load, brief=False, charts=drawn(curves_chart(study)))
    yield Section("HTTP against gRPC", tuple(against_grpc(study)), brief=True)
    yield Section("Payloads", (payloads_map(study),), brief=True)
    yield Section(
        *("Autoscaling", tuple(autoscaling_tables(study)), True), charts=tuple(autoscaling_charts(study))
    )
    yield Section("Over time", (), brief=False, charts=drawn(timeline_chart(study)))
    yield Section("Workers and connections", workers, brief=False)
    yield Section("Cold starts", (cold_starts(study),), brief=False)
    yield Section("Memory", (memory_table(study), memory_by_run(study)), brief=False)
    yield Section("Doubts", doubts, brief=True)
    yield Section("Hypotheses", (hypotheses_table(study),), brief=False)
    yield Section("Every run", each_run, brief=False)
    yield Section("What it ran on", origins, brief=False)


def drawn(*charts: Chart | None) -> tuple[Chart, ...]:
    """Those that have something to show."""
    return tuple(chart for chart in charts if chart)


def against_grpc(study: Study) -> Iterator[Table]:
    """The ratios, and what the arms of an experiment on it say."""
    yield protocols_map(study)
    yield from contention_tables(study, verdicts_on_arms(study), published_figures(study))


def results(study: Study) -> Iterator[Table]:
    """The seeds' tables, published figures beside, what a search for a rate found, open load, floors."""
    yield from seed_tables(study)
    figures = published_figures(study)
    yield from (rates_beside(study, figures), latencies_beside(study, figures), serial_ratios(study, figures))
    yield from (single_images_beside(study), batches_beside(study), growth_beside(study))
    yield from (queue_delays(study), best_delays(study))
    if bound := find_bound(study):
        yield highest_rates(study, bound)
    yield open_load(study)
    yield floors(study)


def filled(sections: Iterable[Section]) -> Iterator[Section]:
    """The sections that have something to show, without their empty tables; long ones are folded."""
    for section in sections:
        tables = tuple(
            replace(table, folded=table.folded or len(table.rows) > LONG)
            for table in section.tables
            if table.rows
        )
        if tables or section.charts:
            yield replace(section, tables=tables)


def facts(study: Study) -> str:
    """Which study, what size, when, and how much of it was run."""
    header = study.header
    runs = f"{len(study.started)} of {plural(len(study.runs), 'run')}"
    return (
        f"{header['study']}, size {header['size']}, started {header['started_utc']}, {study.status}, {runs}"
    )


def commands(study: Study, place: str, usd_per_hour: float | None) -> Iterator[str]:
    """The command that ran the study, where its options state it, and the one that makes this page again."""
    if command := (study.header.get("options") or {}).get("command"):
        yield str(command)
    price = "" if usd_per_hour is None else f" --usd-per-hour {usd_per_hour:g}"
    yield f"python -m reports show {shlex.quote(place)}{price}"


def gate_command(place: str) -> str:
    """The one that judges the study in `place` again."""
    return f"python -m reports gate {shlex.quote(place)}"
