"""The page that all renderers print: what was found, the tables, where the numbers come from.

Its questions are all those in the packages below this folder.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from reports import topics
from reports.format import plural
from reports.gates.verdict import Verdict
from reports.page.disclosures import guessed
from reports.page.page import LONG, Page, Section
from reports.page.question import Question
from reports.stats.repeats import grouped
from reports.study.study import Study, notices
from reports.topics.gates import gate_tables, gates_chart, gates_finding

SECTIONS = (
    Section("Results", paired=True),
    Section("Serialisation"),
    Section("Operators", brief=False, paired=True),
    Section("Where the time goes"),
    Section("Load and cost", brief=False),
    Section("HTTP against gRPC"),
    Section("Payloads"),
    Section("Autoscaling"),
    Section("Over time", brief=False),
    Section("Workers and connections", brief=False),
    Section("Cold starts", brief=False),
    Section("Memory", brief=False),
    Section("Doubts"),
    Section("Hypotheses", brief=False),
    Section("Every run", brief=False),
    Section("What it ran on", brief=False),
)
"""In reading order; those of questions that stand under another heading come after them."""


@cache
def questions() -> tuple[Question, ...]:
    """All of them, section by section and by place."""
    modules = [import_module(found.name) for found in walk_packages(topics.__path__, f"{topics.__name__}.")]
    found = {it for module in modules for it in vars(module).values() if isinstance(it, Question)}
    order = {section.heading: at for at, section in enumerate(SECTIONS)}
    return tuple(sorted(found, key=lambda it: (order.get(it.section, len(order)), it.place, it.name)))


def questions_of(study: Study) -> list[Question]:
    """Those that apply to a study."""
    return [asked for asked in questions() if asked.applies(study)]


def build_page(
    study: Study, place: str, usd_per_hour: float | None = None, verdicts: Sequence[Verdict] = ()
) -> Page:
    """Everything a report of the study in `place` says; empty charts, tables and sections are left out."""
    judged = bool(verdicts)
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        notices=(*notices(study), *guessed(study)),
        findings=(*([gates_finding(verdicts)] if judged else []), *findings(study)),
        sections=(*([gates_section(verdicts)] if judged else []), *sections(study)),
        commands=(*commands(study, place, usd_per_hour), *([gate_command(place)] if judged else [])),
    )


def findings(study: Study) -> tuple[str, ...]:
    """Those of each theme together; one saying that nothing can be said where no request succeeded."""
    if not any(run.succeeded for run in study.started):
        return ("No run left a successful request, so nothing can be said about speed.",)
    asked = sorted(questions_of(study), key=lambda it: it.theme)
    told = {it.name: said for it in asked if (said := it.finds(study))}
    heard = [it for it in asked if it.name in told and not told.keys() & it.unless]
    themes = grouped(heard, lambda it: it.theme).values()
    return tuple(" ".join(told[it.name] for it in alike) for alike in themes)


def sections(study: Study) -> Iterator[Section]:
    """What questions show, in reading order: what came out, why, what to doubt, what it ran on."""
    known = {section.heading: section for section in SECTIONS}
    for heading, asked in grouped(questions_of(study), lambda it: it.section).items():
        shown = (it for one in asked for it in one.shown(study))
        section = known.get(heading, Section(heading)).of(shown).long_folded
        if not section.empty:
            yield section


def gates_section(verdicts: Sequence[Verdict]) -> Section:
    """Where some verdicts stand; what did not pass is never folded, however long."""
    others, passed = gate_tables(verdicts)
    return Section("Gates").of(
        (others, replace(passed, folded=len(passed.rows) > LONG), gates_chart(verdicts))
    )


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
