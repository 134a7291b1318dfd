"""The options of every study, on top of Locust's own: added to its parser, resolved and checked."""

import locust.argument_parser  # noqa: F401  (it lets every parser read variables of the environment)

import argparse
from collections.abc import Iterator
from typing import Any

from reports.caveats.rate_bound import BY_SLO
from swarm.errors import UsageError
from swarm.options.addresses import Place, check_secrets, place_of
from swarm.options.model import TLS, Options, flag, known_options
from swarm.options.option import Option
from swarm.options.values import PEM, SecretError, fault
from users.backends.registry import model_options, url_options
from users.load.assignment import LIBRARY
from users.load.mix import mix_of
from users.tls import Security

OF_SPLIT = ("levels", "load_profile", "find_rate", "replay", "floor")
OF_TOGETHER = ("split", "rates", "batches", "batch_mix", *OF_SPLIT)
"""Options that say of other cells than those of a group."""
OF_REPLAY = (
    *("rates", "find_rate", "load_profile", "arrivals", "batches", "batch_mix", "picture_mix"),
    *("levels", "seconds", "iterations"),
)
"""Options that say what a trace says."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ours, in groups, to a parser, which keeps those of its own that are called so.

    Locust builds one for every page.
    """
    known = {one for action in parser._actions for one in action.option_strings}
    groups: dict[str, Any] = {}
    for name, option in known_options().items():
        if flag(name) not in known:
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            add(groups[option.group], name, option)


def add(group: Any, name: str, option: Option) -> None:
    """Add one. Its text is read when all are resolved: the web form sends texts, too."""
    if option.repeated:
        told = f"{option.help} (default: {option.otherwise})"
        action = group.add_argument(flag(name), action="append", metavar=option.metavar, help=told)
    elif option.default is False:
        action = group.add_argument(flag(name), action="store_true", help=option.help)
    else:
        unit = f"{option.unit}; " if option.unit else ""
        action = group.add_argument(
            flag(name),
            default=option.default_text,
            metavar=option.metavar,
            choices=option.choices,
            env_var=option.env_var,
            help=f"{option.help} ({unit}default: {option.otherwise})",
        )
    action.include_in_web_ui = option.in_form


def resolve(parsed: argparse.Namespace | None) -> Options:
    """Options checked for sense. Raises UsageError naming the option and the fix."""
    assert parsed is not None, "Locust parses options before it fires init"
    values = {
        name: value_of(name, option, getattr(parsed, parsed_as(name)))
        for name, option in known_options().items()
    }
    urls = {name: url for name in url_options() if (url := values.pop(name))}
    models = {name: values.pop(name) for name in model_options()}
    made = Options(urls=urls, models=models, **values)
    check(made)
    return made


def parsed_as(name: str) -> str:
    """What the parser calls an option: as it is typed."""
    return flag(name)[2:].replace("-", "_")


def value_of(name: str, option: Option, told: Any) -> Any:
    """What a text, or a switch, makes of the option; the default where it is empty. Raises UsageError."""
    if option.default is False:
        return bool(told)
    if option.repeated:
        return tuple(str(one) for one in told or ())
    text = "" if told is None else str(told)
    try:
        return option.read(text) if text.strip() else option.default
    except ValueError as error:
        shown = "" if isinstance(error, SecretError) else f" {text}"
        raise UsageError(f"{flag(name)}{shown}: {error}") from error


def changes(first: Options, now: Options) -> list[str]:
    """The options that the web form has changed since the process started, as they are typed."""
    typed = []
    for name, option in known_options().items():
        if option.in_form and (value := getattr(now, name)) != getattr(first, name):
            text = ",".join(f"{one:g}" for one in value) if isinstance(value, tuple) else str(value)
            typed += [flag(name), option.default_text if value == option.default else text]
    return typed


def check(options: Options) -> None:
    """Do the options fit together, and those of TLS serve? Raises UsageError."""
    check_tls(options)
    for name, option in known_options().items():
        what, *others = option.needs or ("",)
        if others and options.given(name) and not any(map(options.given, others)):
            raise UsageError(
                f"{flag(name)}: applies only to {what}; also give {' or '.join(map(flag, others))}"
            )
    if sentence := next(contradictions(options), ""):
        raise UsageError(sentence)


def contradictions(it: Options) -> Iterator[str]:
    """What cannot be asked for at once, and what to do about it."""
    if it.load_profile and it.find_rate:
        yield "--load-profile: a search needs a constant rate; leave out --load-profile or --find-rate"
    if it.find_rate and (it.repeats > 1 or len(it.rates) > 1):
        yield "--find-rate: searches once, from one rate; leave out --repeats and further --rates"
    if it.find_rate and it.repeat_until_decided:
        yield "--repeat-until-decided: a search for a rate is not repeated; leave out one of them"
    if it.find_rate == BY_SLO and not it.slo:
        yield "--find-rate slo: needs the objective that is to be kept; also give --slo, e.g. 'p99<=100'"
    yield from of_groups(it)
    for name in OF_REPLAY if it.replay else ():
        if it.given(name):
            yield f"--replay: the trace says what is sent, and when; leave out {flag(name)}"
    if it.replay:
        yield from of_trace(it)
    yield from of_mixes(it)
    if it.batch_mix and it.batches:
        yield "--batch-mix: says which batches are sent; leave out --batches"
    if it.given("grpc_scheduling") and it.client == LIBRARY:
        yield "--grpc-scheduling: applies only to --client prepared; leave it out, or add that client"
    if it.tls_no_verify and it.tls_ca:
        yield "--tls-no-verify: ignores --tls-ca; leave out one of them"
    for name in ("emulate", "precision", "trace"):
        if not it.embedded and it.given(name):
            yield f"{flag(name)}: applies only to embedded servers; leave out the URLs, or {flag(name)}"
    if not it.embedded and any(it.links):
        yield f"--link {it.link}: applies only to embedded servers; leave out the URLs, or give --link none"
    for name in ("prepare", "output", "shape", "input", "space"):
        if it.given(name) and not it.endpoint:
            yield f"{flag(name)}: applies only to --endpoint; also give that, or leave out {flag(name)}"
    if it.kube_url and it.embedded:
        yield "--kube-url: watches a service of yours; also give its URL"


def of_trace(it: Options) -> Iterator[str]:
    """What is wrong with the trace, or cannot be told of its times."""
    try:
        it.read_trace()
    except ValueError as error:
        yield f"--replay {it.replay}: {error}"


def of_mixes(it: Options) -> Iterator[str]:
    """What is wrong with batches and pictures that are mixed with each other."""
    try:
        mix_of(it.batch_mix, it.picture_mix, 1)
    except ValueError as error:
        yield f"--batch-mix and --picture-mix: {error}"


def of_groups(it: Options) -> Iterator[str]:
    """What cannot be asked for where cells run at the same time."""
    if not it.together and not it.split:
        return
    group = "--together" if it.together else "--split"
    others = OF_TOGETHER if it.together else OF_SPLIT
    for name in others:
        if it.given(name):
            yield f"{group}: sets the load itself; leave out {flag(name)}"
    for axis in it.axes:
        if len(axis.values) > 1:
            yield f"{flag(axis.field)}: cells of {group} run at the same time; give one value"


def check_tls(options: Options) -> None:
    """Are all URLs readable, and the options of TLS of use to them? Raises UsageError."""
    secure = [name for name, url in options.urls.items() if place(name, url).tls]
    # What a file says is not known yet.
    secure += [target for target in options.endpoint if "s://" in target or target.endswith(".toml")]
    for name, option in known_options().items():
        if option.group == TLS and options.given(name) and not secure:
            raise UsageError(
                f"{flag(name)}: applies only to TLS; also give a target as https://host:port or grpcs://host:port"
            )
    if options.tls_no_verify and (over_grpc := [name for name in secure if name.endswith("_grpc_url")]):
        raise UsageError(
            "--tls-no-verify: gRPC always verifies certificates; give --tls-ca instead, or leave out"
            f" {flag(over_grpc[0])}"
        )
    cert, key = options.tls_client_cert, options.tls_client_key
    if bool(cert) != bool(key):
        one, other = ("cert", "key") if cert else ("key", "cert")
        raise UsageError(
            f"--tls-client-{one}: a certificate and its key belong together; also give --tls-client-{other}"
        )
    wrong = fault(Security(cert=cert, key=key, verify=False)) if cert else ""
    if "MISMATCH" in wrong:
        raise UsageError(f"--tls-client-key {key}: is not the key of {cert}; name the one that is")
    if wrong:
        raise UsageError(f"--tls-client-key {key}: holds no private key without a passphrase; {PEM}")


def place(name: str, url: str) -> Place:
    """Where one of the URL options leads. Raises UsageError; a path is of metrics alone."""
    _, of = url_options()[name]
    if of == "metrics":
        check_secrets(flag(name), url, page=True)
        return Place("", url.startswith("https://"))
    return place_of(flag(name), url, of)
