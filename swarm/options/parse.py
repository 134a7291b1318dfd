"""The options of every study, on top of Locust's own: added to its parser, resolved and checked."""

from locust.argument_parser import LocustArgumentParser

import argparse
import math
import os
import re
import ssl
from collections.abc import Iterable
from typing import Any

from reports.caveats.rate_bound import RateBound
from swarm.errors import UsageError
from swarm.options.addresses import Place, check_secrets, place_of
from swarm.options.model import NUMBERS, OPTIONS, SIZES, SWITCHES, TEXTS, URLS, Option, Options, flag
from users.load.load_profile import seconds_of
from users.tls import Security, new_context

MOST_PER_S = 100_000
FILES = ("tls_ca", "tls_client_cert", "tls_client_key")
PEM = "name a file in PEM form"


def add_options(parser: LocustArgumentParser) -> None:
    """Add ours to Locust's parser, of which it builds one for every page."""
    for name, text in URLS.items():
        add(parser, name, Option(f"Address of {text}", "", metavar="URL"))
    for name, option in SWITCHES.items():
        parser.add_argument(flag(name), action="store_true", help=option.help, include_in_web_ui=False)
    for name, option in TEXTS.items():
        add(parser, name, option)
    parser.add_argument(
        "--study", default="quick", choices=SIZES, env_var="STUDY", help="Size of the study: quick or full"
    )
    for name, option in NUMBERS.items():
        add(parser, name, option, type=Options.__annotations__[name])


def add(parser: LocustArgumentParser, name: str, option: Option, **rest: Any) -> None:
    """Add an option that takes a value."""
    named = {"default": option.default, "metavar": option.metavar, "help": option.help, **rest}
    parser.add_argument(flag(name), include_in_web_ui=option.in_form, **named)


def resolve(parsed: argparse.Namespace | None) -> Options:
    """Options checked for sense. Raises UsageError naming the option and the mend."""
    assert parsed is not None, "Locust parses options before it fires init"
    if parsed.study not in SIZES:
        raise UsageError(f"--study {parsed.study}: give one of {', '.join(SIZES)}")
    values: dict[str, Any] = {name: bool(getattr(parsed, name)) for name in SWITCHES}
    values |= {name: checked_text(name, option, getattr(parsed, name)) for name, option in TEXTS.items()}
    values["rates"] = rates_of(parsed.rates)
    if os.path.exists(parsed.pretrained):
        values["pretrained"] = os.path.abspath(parsed.pretrained)
    values |= {name: checked(name, option, getattr(parsed, name)) for name, option in NUMBERS.items()}
    made = Options({name: url for name in URLS if (url := getattr(parsed, name))}, parsed.study, **values)
    check(made)
    return made


def changes(first: Options, now: Options) -> list[str]:
    """The options that the web form has changed since the process started, as they are typed."""
    typed = []
    shown = sorted(name for name, option in TEXTS.items() if option.in_form)
    for name in ("size", *NUMBERS, *shown):
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


def checked_text(name: str, option: Option, value: str) -> str:
    """The text, if it may be one; a path from the root. Raises UsageError."""
    if option.known and value not in option.known:
        raise UsageError(f"{flag(name)} {value}: give one of {', '.join(option.known)}")
    return os.path.abspath(value) if value and option.is_path else value


def checked(name: str, option: Option, value: Any) -> Any:
    """The number, converted (the web form sends text) and found sensible, or 0 where none was given."""
    if value in (None, ""):
        return option.default or 0
    holds, advice = option.sense
    try:
        converted = Options.__annotations__[name](value)
    except (ValueError, OverflowError):
        converted = math.nan
    if (isinstance(converted, float) and not math.isfinite(converted)) or not holds(converted):
        raise UsageError(f"{flag(name)} {value}: {advice}")
    if not -option.most <= converted <= option.most:
        raise UsageError(f"{flag(name)} {value}: give {option.most:,} at most")
    return converted


def refuse(options: Options, names: Iterable[str], what: str) -> None:
    """Raises UsageError where one of some options is given, since what it is of is not."""
    for name in names:
        if getattr(options, name) != OPTIONS[name].default:
            raise UsageError(f"{flag(name)}: is of {what}, too")


def check(options: Options) -> None:
    """Do the options fit together, and those of TLS serve? Raises UsageError."""
    check_load(options)
    check_tls(options)
    check_servers(options)
    check_kubernetes(options)
    check_gate(options)
    _ = options.axes


def check_servers(options: Options) -> None:
    """Do the options of servers fit together? Raises UsageError."""
    for name in ("emulate", "trace"):
        if getattr(options, name) and options.urls:
            raise UsageError(f"{flag(name)}: is of embedded servers; leave the URLs out, or {flag(name)}")
    if options.urls and any(options.axes.links):
        raise UsageError(
            f"--link {options.link}: leads to embedded servers; leave the URLs out, or give --link none"
        )


def check_load(options: Options) -> None:
    """Do the options of open load fit together? Raises UsageError."""
    if options.load_profile:
        check_profile(options)
    if options.find_rate:
        try:
            RateBound.parse(options.find_rate)
        except ValueError as error:
            raise UsageError(f"--find-rate {options.find_rate}: {error}") from error
        if options.repeats > 1 or len(options.rates) > 1:
            raise UsageError(
                "--find-rate: searches once, from one rate; leave --repeats or further --rates out"
            )
    elif not options.rates:
        refuse(options, ("arrivals", "max_in_flight"), "open load; give --rates or --find-rate")


def check_profile(options: Options) -> None:
    """Is it a load profile, and can its rates be watched? Raises UsageError."""
    try:
        seconds_of(options.load_profile)
    except ValueError as error:
        raise UsageError(f"--load-profile {options.load_profile}: {error}") from error
    if options.find_rate:
        raise UsageError("--load-profile: a search needs a rate that stays; leave it or --find-rate out")


def check_kubernetes(options: Options) -> None:
    """Do the options of the Kubernetes API fit together? Raises UsageError."""
    names = ("kube_namespace", "kube_deployment")
    if not options.kube_url:
        refuse(options, names, "the Kubernetes API; give --kube-url")
    for name in names:
        text = getattr(options, name)
        if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", text):
            raise UsageError(f"{flag(name)} {text}: give a Kubernetes name: a to z, 0 to 9, - and .")
    if options.kube_url and not options.urls:
        raise UsageError("--kube-url: watches a service of yours; give its URL, e.g. --pytorch-url, too")


def check_gate(options: Options) -> None:
    """Do the options of gates fit together? Raises UsageError."""
    if not options.gate:
        refuse(options, ("baseline", "repeat_until_decided"), "gates; give --gate")
    if options.repeat_until_decided and options.find_rate:
        raise UsageError("--repeat-until-decided: a search for a rate is not repeated; leave one of them out")


def check_tls(options: Options) -> None:
    """Are all URLs readable, and the options of TLS of use to them? Raises UsageError."""
    secure = [name for name, url in options.urls.items() if place(name, url).tls]
    if not secure:
        refuse(
            options, (*FILES, "tls_no_verify"), "TLS; give a target as https://host:port or grpcs://host:port"
        )
    if bool(options.tls_client_cert) != bool(options.tls_client_key):
        one, other = sorted(FILES[1:], key=lambda name: not getattr(options, name))
        raise UsageError(f"{flag(one)}: a certificate and its key belong together; give {flag(other)}, too")
    if options.tls_no_verify:
        check_no_verify(options, secure)
    check_files(options.security)


def place(name: str, url: str) -> Place:
    """Where one of the URL options leads. Raises UsageError; a path is of metrics alone."""
    if name.endswith("_metrics_url"):
        check_secrets(flag(name), url)
        return Place("", url.startswith("https://"))
    return place_of(flag(name), url, "grpc" if name.endswith("_grpc_url") else "http")


def check_no_verify(options: Options, secure: list[str]) -> None:
    """Can verification be left out? Raises UsageError."""
    if options.tls_ca:
        raise UsageError("--tls-no-verify: leaves --tls-ca nothing to do; leave one of them out")
    if over_grpc := [flag(name) for name in secure if name.endswith("_grpc_url")]:
        raise UsageError(
            f"--tls-no-verify: gRPC cannot leave verification out; give --tls-ca in its place, or leave"
            f" {over_grpc[0]} out"
        )


def check_files(security: Security) -> None:
    """Can the files be read, and are they what they should be? Raises UsageError."""
    for name, path in zip(FILES, (security.ca, security.cert, security.key), strict=True):
        try:
            if path:
                open(path, "rb").close()
        except OSError as error:
            raise UsageError(f"{flag(name)} {path}: cannot be read ({error.strerror}); {PEM}") from error
    for name, path in (("tls_ca", security.ca), ("tls_client_cert", security.cert)):
        if path and fault(Security(ca=path)):
            raise UsageError(f"{flag(name)} {path}: holds no certificate; {PEM}")
    if not security.cert:
        return
    wrong = fault(Security(cert=security.cert, key=security.key, verify=False))
    if "MISMATCH" in wrong:
        raise UsageError(
            f"--tls-client-key {security.key}: is not the key of {security.cert}; name the one that is"
        )
    if wrong:
        raise UsageError(f"--tls-client-key {security.key}: holds no private key without a passphrase; {PEM}")


def fault(security: Security) -> str:
    """What OpenSSL has against the files, or nothing."""
    try:
        new_context(security)
    except ssl.SSLError as error:
        return error.reason or "unreadable"
    return ""
