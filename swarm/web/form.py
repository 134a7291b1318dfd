"""The form that starts a study: its options in four parts, and the plan that they make."""

import logging
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarm.errors import UsageError
from swarm.options.model import EXPORTERS, FAILURES, KNOWN, LOAD, STUDY, Options, flag, known_options
from swarm.options.option import VARIED, Option
from swarm.options.parse import parsed_as
from swarm.plan.matrix import AMOUNTS, Size

TARGETS, OFFERED, DURATION, OUTPUT = "Targets", "Load", "Duration", "Output"
PART_OF_GROUP = {STUDY: DURATION, VARIED: TARGETS, LOAD: OFFERED, FAILURES: OUTPUT, KNOWN: OUTPUT}
PART_OF = {
    **dict.fromkeys(("cells", "grpc_scheduling"), TARGETS),
    **dict.fromkeys(("batches", "batch_mix", "levels", "think", "together"), OFFERED),
    "slo": OUTPUT,
}
"""Of options that stand in another part than the others of their group."""
SHOWN = ("cells", "batches", "levels", "rates", "size", "seconds", "repeats")
"""In sight at once; the others of a part are folded."""
SIZED = (*AMOUNTS, "batches", "levels")
"""Options of which a study's size has its own."""

logger = logging.getLogger("inferswarm")


@dataclass(frozen=True)
class FormField:
    """One option in the form: `value` is what holds now, `otherwise` what an empty one stands for."""

    name: str
    label: str
    about: str
    value: str
    otherwise: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class FormPart:
    """A part of the form: what is fixed since the process began, and its fields."""

    title: str
    facts: Sequence[str]
    shown: Sequence[FormField]
    folded: Sequence[FormField]


@dataclass(frozen=True)
class StartForm:
    """What stands in the form now, and what a filled one would do.

    `parsed` gives the options as they stand, `facts` what is known of a part beside them. `plan` gives the
    plan of options by name, and the amounts of its size; it raises UsageError.
    """

    parsed: Callable[[], Namespace | None]
    facts: Callable[[], Mapping[str, Sequence[str]]]
    plan: Callable[[Mapping[str, str]], tuple[str, Size]]

    def parts(self) -> list[FormPart]:
        """All of the form, from top to bottom."""
        facts, fields = self.facts(), self._fields()
        return [
            FormPart(
                title,
                facts.get(title, ()),
                [field for name, field in fields[title].items() if name in SHOWN],
                [field for name, field in fields[title].items() if name not in SHOWN],
            )
            for title in (TARGETS, OFFERED, DURATION, OUTPUT)
        ]

    def _fields(self) -> dict[str, dict[str, FormField]]:
        found: dict[str, dict[str, FormField]] = {part: {} for part in (TARGETS, OFFERED, DURATION, OUTPUT)}
        for name, option in known_options().items():
            if option.in_form:
                part = PART_OF.get(name) or PART_OF_GROUP.get(option.group, OUTPUT)
                found[part][name] = field_of(name, option, getattr(self.parsed(), parsed_as(name), ""))
        return found

    def judge(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The `plan` of a filled form, or the `fault` for which it would not begin; the other is empty.

        `amounts` has what empty fields stand for, by their names.
        """
        names = {parsed_as(name) for name, option in known_options().items() if option.in_form}
        try:
            plan, size = self.plan({n: text for n, text in asked.items() if n in names})
        except UsageError as error:
            return {"plan": "", "fault": str(error), "amounts": {}}
        return {"plan": plan, "fault": "", "amounts": {name: typed(getattr(size, name)) for name in SIZED}}

    def refusal(self, asked: Mapping[str, str]) -> str:
        """Why a study with these options is not begun, which is logged, too; empty where it may."""
        fault = str(self.judge(asked)["fault"])
        if fault:
            logger.info("inferswarm: %s", fault)
        return fault


def written(options: Options) -> list[str]:
    """Where all that is measured goes, fixed since the process began: files, and other tools."""
    told = [name for name, option in known_options().items() if option.group == EXPORTERS]
    others = [f"{flag(name)} {getattr(options, name)}" for name in told if options.given(name)]
    return [f"results and report in {options.results_dir}/", *others]


def typed(amount: float | tuple[int, ...]) -> str:
    """As it is typed: `1,8`.

    >>> typed((1, 8)), typed(2.5)
    ('1,8', '2.5')
    """
    return ",".join(f"{one:g}" for one in (amount if isinstance(amount, tuple) else (amount,)))


def field_of(name: str, option: Option, value: object) -> FormField:
    """An option as the form shows it."""
    unit = f", in {option.unit}" if option.unit else ""
    return FormField(
        parsed_as(name),
        flag(name)[2:].replace("-", " ").capitalize(),
        f"{option.help}{unit}",
        "" if value is None else str(value),
        option.otherwise,
        tuple(option.choices or ()),
    )
