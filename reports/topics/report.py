"""The page that all renderers print: what was found, the tables, where the numbers come from."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.format import plural
from reports.gates.verdict import Verdict
from reports.page.page import LONG, Page, Section, drawn, filled
from reports.page.table import Table
from reports.published_figures.hypotheses import hypotheses_table
from reports.published_figures.rates import latencies_beside, published_figures, rates_beside, serial_ratios
from reports.published_figures.step6 import batches_beside, costs_beside, growth_beside, single_images_beside
from reports.study.study import Study, notices
from reports.topics.autoscaling.tables import autoscaling_charts, autoscaling_finding, autoscaling_tables
from reports.topics.contention.tables import contention_finding, contention_tables
from reports.topics.contention.verdict import verdicts as verdicts_on_arms
from reports.topics.gates import gate_tables, gates_chart, gates_finding
from reports.topics.load.cost import cost_table
from reports.topics.load.open_load import open_finding, open_load
from reports.topics.load.queue_delay import best_delays, delay_finding, queue_delays
from reports.topics.load.rate_search import find_bound, highest_rates, rate_finding
from reports.topics.load.saturation import curves_chart
from reports.topics.load.scaling import scaling_table, usl_table
from reports.topics.load.wire import wire_ceilings
from reports.topics.payloads.matrix import fastest_finding, floors, seed_tables
from reports.topics.payloads.payloads import payloads_finding, payloads_map, protocols_finding, protocols_map
from reports.topics.payloads.serialisation import serialisation_finding, serialisation_tables
from reports.topics.runs.origins import origins
from reports.topics.runs.runs import caveats_by_code, caveats_by_run, every_run, failures_by_kind
from reports.topics.runs.timeline import timeline_chart
from reports.topics.runs.workers import connections_and_path, generator_health, per_worker
from reports.topics.servers.breakdown import (
    against,
    breakdown_chart,
    in_the_way,
    traced_requests,
    where_the_time_goes,
)
from reports.topics.servers.cold_start import cold_starts
from reports.topics.servers.memory import backends_finding, memory_by_run, memory_table
from reports.topics.servers.operators import operator_tables


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


def findings(study: Study) -> tuple[str, ...]:
    """A few: what was fastest or proven, gRPC against HTTP, payloads, JSON, queue delays, what to doubt.

    One saying that nothing can be said where no request succeeded.
    """
    if not any(run.succeeded for run in study.started):
        return ("No run left a successful request, so nothing can be said about speed.",)
    proven = contention_finding(study)
    rated = rate_finding(study) or open_finding(study) or autoscaling_finding(study)
    speed = " ".join(filter(None, (rated, fastest_finding(study))))
    protocols = protocols_finding(study) or backends_finding(study)
    said = [proven, speed] if proven else [speed, protocols]
    said += [payloads_finding(study), serialisation_finding(study), delay_finding(study), against(study)]
    return tuple(filter(None, said))


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
    arms = contention_tables(study, verdicts_on_arms(study), published_figures(study))
    workers = (per_worker(study), generator_health(study), connections_and_path(study))
    each_run = (every_run(study), traced_requests(study))
    doubts = (caveats_by_code(study), failures_by_kind(study), caveats_by_run(study))
    yield Section("Results", tuple(results(study)), brief=True, paired=True)
    yield Section("Serialisation", tuple(serialisation_tables(study)), brief=True)
    yield Section("Operators", tuple(operator_tables(study)), brief=False, paired=True)
    yield Section("Where the time goes", limits, brief=True, charts=drawn(breakdown_chart(study)))
    yield Section("Load and cost", load, brief=False, charts=drawn(curves_chart(study)))
    yield Section("HTTP against gRPC", (protocols_map(study), *arms), brief=True)
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
    yield Section("What it ran on", tuple(origins(study)), brief=False)


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


def gates_page(study: Study, place: str, verdicts: Sequence[Verdict]) -> Page:
    """Which study, what to know of it as a whole, and its gates."""
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        notices=tuple(notices(study)),
        findings=(gates_finding(verdicts),),
        sections=(gates_section(verdicts),),
        commands=(gate_command(place),),
    )
