"""What is known of an option, and the fields that declare one in swarm/options/model.py, by kind."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarm.options import values
from swarm.options.values import Reader
from swarm.plan.sweep import AxisOption

VARIED = "Sweeps: several values, separated by commas, are compared"
"""The group of most axes."""
NONE = "none"


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name and type.

    `read` makes a value of what is typed, or raises ValueError with what to give; an empty text is the
    `default`. `unset` says what holds where it is not given, if the default does not say so itself.
    `in_form`: whether the web form asks for it, since it makes sense between two presses of Start; all others
    are resolved once, when the process starts. `axis`: it is one, and sets the field of its name in
    cells. `needs`: what it is of, and the options of which one must be given, too. `repeated`: it may be
    given several times, and is a tuple of what each time says.
    """

    group: str
    metavar: str | None
    default: Any
    help: str
    read: Reader = str
    unit: str = ""
    unset: str = ""
    in_form: bool = False
    axis: AxisOption | None = None
    needs: tuple[str, ...] = ()
    flag: str = ""
    env_var: str | None = None
    choices: Sequence[str] | None = None
    repeated: bool = False

    @property
    def default_text(self) -> str:
        """The default as the form shows it, and as it could be typed."""
        return "" if self.unset else str(self.default)

    @property
    def otherwise(self) -> str:
        """What holds where it is not given, as people read it; empty for a switch."""
        said = f"{self.default:,g}" if isinstance(self.default, (int, float)) else str(self.default)
        return "" if self.default is False else self.unset or said


def text(group: str, metavar: str | None = None, default: Any = "", **more: Any) -> Any:
    """A field for an option that is a text, unless `read` makes something else of it."""
    return field(metadata={"option": Option(group, metavar, default, **more)})


def asked(group: str, metavar: str | None = None, default: Any = "", **more: Any) -> Any:
    """As `text`, and the web form asks for it, too, unless it is told otherwise."""
    return text(group, metavar, default, **{"in_form": True, **more})


def several(group: str, metavar: str, **more: Any) -> Any:
    """A field for what may be given several times."""
    return text(group, metavar, (), repeated=True, **more)


def switch(group: str, help: str) -> Any:
    """A field for what is given or not."""
    return text(group, None, False, help=help)


def place(group: str, metavar: str, **more: Any) -> Any:
    """A field for a file or folder, kept as it is found from anywhere."""
    return text(group, metavar, **{"read": os.path.abspath, "unset": NONE, **more})


def of_backends(options: Callable[[], Mapping[str, Option]]) -> Any:
    """A field for options that are as many as backends are known."""
    return field(metadata={"options": options})


def number(group: str, kind: type[float], default: float, *bounds: Any, **more: Any) -> Any:
    """A field for a number within bounds, as `values.number` takes them."""
    return asked(group, "N", default, read=values.number(kind, *bounds), **more)


def axis(metavar: str, how: AxisOption, default: str = "", group: str = VARIED, **more: Any) -> Any:
    """A field for an axis."""
    return asked(group, metavar, default, read=values.checked(how.values), axis=how, **more)
