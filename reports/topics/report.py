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
from reports.format import duration, moment, plural
from reports.gates.verdict import Verdict
from reports.page.answer import AnswerRow
from reports.page.disclosures import disclosures, guessed, silent_said
from reports.page.page import Chart, Page, Section
from reports.page.question import Question
from reports.stats.repeats import grouped, repeats
from reports.study.study import Study, notices
from reports.topics.gates import gate_tables, gates_answer, gates_chart
from reports.topics.load.saturation import explores_load

LOAD = "Load and cost"
SECTIONS = (
    Section("Results", paired=True),
    Section("Serialisation"),
    Section("HTTP against gRPC"),
    Section("Payloads"),
    Section("Load profile"),
    Section("Autoscaling"),
    Section("Operators", brief=False, paired=True, folded=True),
    Section("Latency breakdown"),
    Section(LOAD, brief=False),
    Section("Caveats"),
    Section("Latency distribution", brief=False, folded=True),
    Section("Timeline", brief=False, folded=True),
    Section("Workers and connections", brief=False, folded=True),
    Section("Cold starts", brief=False, folded=True),
    Section("Memory", brief=False, folded=True),
    Section("Hypotheses", brief=False, folded=True),
    Section("Runs", brief=False, folded=True),
    Section("Environment", brief=False, folded=True),
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
    every = answers(study)
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        banner=banner(study),
        notices=(*notices(study), *guessed(study)),
        answers=(*([gates_answer(verdicts)] if judged else []), *every),
        charts=tuple(chart for one in questions_of(study) for chart in overview(one, study)),
        sections=(*([gates_section(verdicts)] if judged else []), *sections(study)),
        commands=(*commands(study, place, usd_per_hour), *([gate_command(place)] if judged else [])),
    )


def banner(study: Study) -> tuple[str, ...]:
    """What stands in for something else, and which servers state no times: said once for all numbers."""
    return (*disclosures(study, study.endpoints), *silent_said(study))


def answers(study: Study) -> tuple[AnswerRow, ...]:
    """The rows of the first screen, in the order of their themes."""
    asked = sorted(questions_of(study), key=lambda it: it.theme)
    told = {it.name: found for it in asked if (found := it.finds(study))}
    return tuple(told[it.name] for it in asked if it.name in told and not told.keys() & it.unless)


def overview(asked: Question, study: Study) -> Iterator[Chart]:
    """The charts of a question that stands under no heading: those of the first screen."""
    if not asked.section:
        yield from (it for it in asked.shown(study) if isinstance(it, Chart))


def sections(study: Study) -> Iterator[Section]:
    """What questions show, in reading order: what came out, why, what to doubt, what it ran on."""
    known = {section.heading: section for section in SECTIONS}
    asked_under = grouped((it for it in questions_of(study) if it.section), lambda it: it.section)
    once = tuple(filter(None, [repeats(study)]))
    for heading, asked in asked_under.items():
        shown = (it for one in asked for it in one.shown(study))
        section = known.get(heading, Section(heading)).of(shown).long_folded
        if heading == LOAD and not explores_load(study):
            section = replace(section, folded=True)
        if not section.empty:
            yield replace(section, sentences=(*once, *section.sentences))
            once = ()


def gates_section(verdicts: Sequence[Verdict]) -> Section:
    """Where some verdicts stand; what did not pass is never folded, however long."""
    others, passed = gate_tables(verdicts)
    return Section("Gates").of((others, replace(passed, folded=passed.is_long), gates_chart(verdicts)))


def facts(study: Study) -> str:
    """Which study, when, how long it took, and how much of it was run."""
    header, made = study.header, len(study.started)
    runs = plural(made, "run") if made == len(study.runs) else f"{made} of {plural(len(study.runs), 'run')}"
    took = duration(study.timeline[-1].t_s + 1) if study.timeline else ""
    told = (
        *(f"{header['study']} ({header['size']})", moment(str(header["started_utc"]))),
        *(runs, f"{study.status} in {took}" if took else study.status),
    )
    return ", ".join(told)


def commands(study: Study, place: str, usd_per_hour: float | None) -> Iterator[str]:
    """The command that ran the study, where its options state it, and the one that makes this page again."""
    if command := (study.header.get("options") or {}).get("command"):
        yield str(command)
    price = "" if usd_per_hour is None else f" --usd-per-hour {usd_per_hour:g}"
    yield f"inferswarm report {shlex.quote(place)}{price}"


def gate_command(place: str) -> str:
    """The one that judges the study in `place` again."""
    return f"inferswarm gate {shlex.quote(place)}"


def gates_page(study: Study, place: str, verdicts: Sequence[Verdict]) -> Page:
    """Which study, what to know of it as a whole, and its gates."""
    return Page(
        title=str(study.header["title"]),
        facts=facts(study),
        notices=tuple(notices(study)),
        banner=banner(study),
        answers=(gates_answer(verdicts), *answers(study)),
        sections=(gates_section(verdicts),),
        commands=(gate_command(place),),
    )
