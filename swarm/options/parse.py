"""The options of every study, on top of Locust's own: added to its parser, and resolved."""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

import argparse
import math
import os
from typing import Any

from swarm.errors import UsageError
from swarm.options.checks import check_gate, check_kubernetes, check_load, check_servers
from swarm.options.model import Options
from swarm.options.table import (
    AT_THE_START,
    CHOICES,
    IN_THE_FORM,
    MOST_PER_S,
    NUMBERS,
    SIZES,
    SWITCHES,
    TEXTS,
    URLS,
    Number,
    flag,
)
from swarm.options.tls import FILES, check_tls


def add_options(parser: LocustArgumentParser) -> None:
    """Add ours to Locust's parser, of which it builds one for every page."""
    for name, text in URLS.items():
        parser.add_argument(
            flag(name), default="", metavar="URL", help=f"Address of {text}", include_in_web_ui=False
        )
    for name, text in SWITCHES.items():
        parser.add_argument(flag(name), action="store_true", help=text, include_in_web_ui=False)
    for name, (default, metavar, text) in TEXTS.items():
        shown = name in IN_THE_FORM
        parser.add_argument(flag(name), default=default, metavar=metavar, help=text, include_in_web_ui=shown)
    parser.add_argument(
        "--study", default="quick", choices=SIZES, env_var="STUDY", help="Size of the study: quick or full"
    )
    for name, number in NUMBERS.items():
        default_text = "the size's" if number.default is None else f"{number.default:g}"
        text = f"{number.help} (default: {default_text})"
        shown = name not in AT_THE_START
        parser.add_argument(
            flag(name), type=number.type, default=number.default, help=text, include_in_web_ui=shown
        )


def resolve(parsed: argparse.Namespace | None) -> Options:
    """Options checked for sense. Raises UsageError naming the option and the mend."""
    assert parsed is not None, "Locust parses options before it fires init"
    if parsed.study not in SIZES:
        raise UsageError(f"--study {parsed.study}: give one of {', '.join(SIZES)}")
    texts = {name: getattr(parsed, name) for name in TEXTS if name != "rates"}
    for name, known in CHOICES.items():
        if texts[name] not in known:
            raise UsageError(f"{flag(name)} {texts[name]}: give one of {', '.join(known)}")
    for name in ("images", "gate", "baseline", *FILES):
        texts[name] = os.path.abspath(texts[name]) if texts[name] else ""
    if os.path.exists(texts["pretrained"]):
        texts["pretrained"] = os.path.abspath(texts["pretrained"])
    made = Options(
        urls={name: getattr(parsed, name) for name in URLS if getattr(parsed, name)},
        size=parsed.study,
        skip_trt=bool(parsed.skip_trt),
        floor=bool(parsed.floor),
        trace=bool(parsed.trace),
        tls_no_verify=bool(parsed.tls_no_verify),
        rates=rates_of(parsed.rates),
        **{name: checked(name, number, getattr(parsed, name)) for name, number in NUMBERS.items()},
        **texts,
    )
    check_load(made)
    check_tls(made)
    check_servers(made)
    check_kubernetes(made)
    check_gate(made)
    _ = made.axes
    return made


def changes(first: Options, now: Options) -> list[str]:
    """The options that the web form has changed since the process started, as they are typed."""
    typed = []
    for name in ("size", *NUMBERS, *sorted(IN_THE_FORM)):
        value = getattr(now, name)
        if value != getattr(first, name):
            text = ",".join(f"{rate:g}" for rate in value) if name == "rates" else str(value)
            typed += [flag("study" if name == "size" else name), text]
    return typed


def rates_of(text: str) -> tuple[float, ...]:
    """`50,100`: 50 and 100 requests a second. Raises UsageError."""
    try:
        # As cells are called: two of one name would be taken for one run.
        rates = tuple(dict.fromkeys(float(f"{float(part):g}") for part in text.split(",") if part.strip()))
    except ValueError:
        rates = (math.nan,)
    if not all(0 < rate <= MOST_PER_S for rate in rates):
        raise UsageError(f"--rates {text}: give requests a second, up to {MOST_PER_S:,}, e.g. 50,100")
    return rates


def checked(name: str, number: Number, value: Any) -> Any:
    """The number, converted (the web form sends text) and found sensible, or 0 where none was given."""
    if value in (None, ""):
        return number.default or 0
    try:
        converted = number.type(value)
    except (ValueError, OverflowError):
        converted = math.nan
    if (isinstance(converted, float) and not math.isfinite(converted)) or not number.holds(converted):
        raise UsageError(f"{flag(name)} {value}: {number.advice}")
    if not -number.most <= converted <= number.most:
        raise UsageError(f"{flag(name)} {value}: give {number.most:,} at most")
    return converted
