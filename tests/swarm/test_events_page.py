"""docs/events.md names every event, with every field, and shows the example as it is."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from swarm import events

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/events.md").read_text()
TOLD: dict[str, tuple[type[Any], ...]] = {
    "window": (events.WindowEvent, events.DurationPercentiles),
    "sample": (events.SampleEvent,),
    "health": (events.HealthEvent, events.WorkerSecond),
    "study_started": (events.StudyStarted,),
    "run_started": (events.RunStarted,),
    "phase_started": (events.PhaseStarted,),
    "traced": (events.TracedEvent,),
    "run_ended": (events.RunEnded,),
    "study_ended": (events.StudyEnded,),
    "verdict": (),
}
OF_EVERY = re.compile(r"\*\*Of every second\*\*.*?(?=\n\*\*)", re.DOTALL)


def section(name: str) -> str:
    """What the page says of an event, with what it says of every second."""
    head = f"**`events.{name}`**(`{events.HOOKS[name].argument}`)"
    assert head in PAGE
    shared = OF_EVERY.search(PAGE)
    assert shared
    return shared[0] + PAGE.partition(head)[2].partition("\n**")[0]


def test_all_events_are_there() -> None:
    assert TOLD.keys() == events.HOOKS.keys()


@pytest.mark.parametrize("name", sorted(TOLD))
def test_an_events_fields_are_all_named(name: str) -> None:
    said = set(re.findall(r"`(\w+)`", section(name)))
    assert {field.name for kind in TOLD[name] for field in fields(kind)} <= said


def test_the_example_is_shown_as_it_is() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown == (ROOT / "examples/timelines.py").read_text()
