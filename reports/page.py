"""The page that all renderers print: what was found, the tables, where the numbers come from."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from reports.beside.ratios import serial_ratios
from reports.beside.tables import latencies_beside, published_figures, rates_beside
from reports.contention.tables import contention_tables
from reports.contention.verdict import verdicts
from reports.findings.sentences import findings
from reports.format import plural
from reports.hypotheses.table import hypotheses_table
from reports.limit.bound import find_bound
from reports.study import Study, notices
from reports.tables.attribution import in_the_way, where_the_time_goes
from reports.tables.cold import cold_starts
from reports.tables.floors import floors
from reports.tables.health import generator_health
from reports.tables.links import hosts, links
from reports.tables.open_load import open_load
from reports.tables.origins import endpoints, fingerprint, images, options
from reports.tables.path import connections_and_path
from reports.tables.rates import highest_rates
from reports.tables.runs import caveats_by_code, caveats_by_run, every_run, failures_by_kind
from reports.tables.seeds import seed_tables
from reports.tables.table import Table
from reports.tables.trace import traced_requests


@dataclass(frozen=True)
class Section:
    """Tables under one heading; a brief one is also printed on the console."""

    heading: str
    tables: tuple[Table, ...]
    brief: bool


@dataclass(frozen=True)
class Page:
    """A study as readers see it, in reading order."""

    title: str
    facts: str
    notices: tuple[str, ...]
    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    commands: tuple[str, ...]


def build_page(study: Study, place: str) -> Page:
    """Everything a report of the study in `place` says; empty tables and sections are left out."""
    origins = (
        endpoints(study),
        images(study),
        links(study),
        hosts(study),
        options(study),
        fingerprint(study),
    )
    each_run = (
        *(every_run(study), generator_health(study)),
        *(connections_and_path(study), traced_requests(study), caveats_by_run(study)),
    )
    sections = (
        Section("HTTP against gRPC", tuple(against_grpc(study)), brief=True),
        Section("Results", tuple(results(study)), brief=True),
        Section("Where the time goes", (in_the_way(study), where_the_time_goes(study)), brief=True),
        Section("Doubts", (caveats_by_code(study), failures_by_kind(study)), brief=True),
        Section("Every run", each_run, brief=False),
        Section("What it ran on", origins, brief=False),
    )
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        notices=tuple(notices(study)),
        findings=findings(study),
        sections=tuple(filled(sections)),
        commands=tuple(commands(study, place)),
    )


def against_grpc(study: Study) -> Iterator[Table]:
    """What the arms of an experiment on it say, and the seeds' hypotheses where the study is like theirs."""
    yield from contention_tables(study, verdicts(study), published_figures(study))
    yield hypotheses_table(study)


def results(study: Study) -> Iterator[Table]:
    """The seeds' tables, published figures beside, what a search for a rate found, open load, floors, cold
    starts.
    """
    yield from seed_tables(study)
    figures = published_figures(study)
    yield from (rates_beside(study, figures), latencies_beside(study, figures), serial_ratios(study, figures))
    if bound := find_bound(study):
        yield highest_rates(study, bound)
    yield open_load(study)
    yield floors(study)
    yield cold_starts(study)


def filled(sections: tuple[Section, ...]) -> Iterator[Section]:
    """The sections with only those tables that have rows."""
    for section in sections:
        if tables := tuple(table for table in section.tables if table.rows):
            yield Section(section.heading, tables, section.brief)


def facts(study: Study) -> str:
    """Which study, what size, when, and how much of it was run."""
    header = study.header
    runs = f"{len(study.started)} of {plural(len(study.runs), 'run')}"
    return (
        f"{header['study']}, size {header['size']}, started {header['started_utc']}, {study.status}, {runs}"
    )


def commands(study: Study, place: str) -> Iterator[str]:
    """The command that ran the study, where its options state it, and the one that makes this page again."""
    if command := (study.header.get("options") or {}).get("command"):
        yield str(command)
    yield f"python -m reports show {shlex.quote(place)}"
