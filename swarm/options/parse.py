"""The options of every study, on top of Locust's own: added to its parser, and resolved."""

from __future__ import annotations

from locust.argument_parser import LocustArgumentParser

import argparse
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from swarm.errors import UsageError
from swarm.options.checks import check_gate, check_kubernetes, check_load, check_servers
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
from swarm.plan.matrix import Size
from swarm.plan.sweep import Axes, channels_of, instances_of, links_of, queue_delays_of, topologies_of
from users.tls import Security


@dataclass(frozen=True)
class Options:
    """The resolved options of one study; 0 `iterations`, `seconds`, `warm_up` or
    `repeats` stand for the size's own."""

    urls: Mapping[str, str]
    size: str
    skip_trt: bool
    floor: bool
    trace: bool
    tls_no_verify: bool
    iterations: int
    seconds: float
    warm_up: float
    repeats: int
    seed: int
    max_in_flight: int
    request_timeout: float
    min_cosine: float
    max_failure_ratio: float
    raw_results: int
    link_mbit: float
    usd_per_hour: float
    p95_bound: float
    repeat_until_decided: int
    prometheus_port: int
    rates: tuple[float, ...]
    arrivals: str
    find_rate: str
    load_profile: str
    client: str
    channels: str
    topology: str
    link: str
    queue_delay_us: str
    instances: str
    gate: str
    baseline: str
    images: str
    endpoints: str
    cells: str
    emulate: str
    pretrained: str
    tls_ca: str
    tls_client_cert: str
    tls_client_key: str
    onnx_model: str
    trt_model: str
    kube_url: str
    kube_namespace: str
    kube_deployment: str
    results_dir: str
    prometheus_host: str

    @property
    def embedded(self) -> bool:
        """No server was named: start our own."""
        return not self.urls

    @property
    def axes(self) -> Axes:
        """What they name of channels, links, topologies, client and server settings. Raises UsageError."""
        links, topologies = links_of(self.link), topologies_of(self.topology)
        of_servers = queue_delays_of(self.queue_delay_us), instances_of(self.instances)
        return Axes(channels_of(self.channels), links, topologies, self.client, *of_servers)

    @property
    def security(self) -> Security:
        """How targets are reached over TLS; the token's variable is each backend's own."""
        return Security(self.tls_ca, self.tls_client_cert, self.tls_client_key, not self.tls_no_verify)

    def resolved(self, size: Size) -> Options:
        """The same with the numbers that the study really uses."""
        return replace(
            self,
            iterations=size.iterations,
            seconds=size.seconds,
            warm_up=size.warm_up,
            repeats=size.repeats,
            load_profile=size.profile,
        )

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header keeps them."""
        return {**vars(self), "urls": dict(self.urls)}


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
