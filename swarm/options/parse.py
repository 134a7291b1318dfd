"""The options of every study, on top of Locust's own: added to its parser, resolved and checked."""

import locust.argument_parser  # noqa: F401  (it lets every parser read variables of the environment)

import argparse
import ssl
from collections.abc import Iterable
from typing import Any

from swarm.errors import UsageError
from swarm.options.addresses import Place, check_secrets, place_of
from swarm.options.model import OPTIONS, URLS, Option, Options, flag
from users.tls import Security, new_context

MOST_PER_S = 100_000
FILES = ("tls_ca", "tls_client_cert", "tls_client_key")
PEM = "name a file in PEM form"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add ours, in groups, to a parser, which keeps those of its own that are called so.

    Locust builds one for every page.
    """
    known = {one for action in parser._actions for one in action.option_strings}
    groups: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        if flag(name) not in known:
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            add(groups[option.group], name, option)


def add(group: Any, name: str, option: Option) -> None:
    """Add one. Its text is read when all are resolved: the web form sends texts, too."""
    if option.default is False:
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
    """Options checked for sense. Raises UsageError naming the option and the mend."""
    assert parsed is not None, "Locust parses options before it fires init"
    told = {name: getattr(parsed, flag(name)[2:].replace("-", "_")) for name in OPTIONS}
    values = {name: value_of(name, OPTIONS[name], value) for name, value in told.items()}
    urls = {name: url for name in URLS if (url := values.pop(name))}
    made = Options(urls=urls, **values)
    check(made)
    return made


def value_of(name: str, option: Option, told: Any) -> Any:
    """What a text, or a switch, makes of the option; the default where it is empty. Raises UsageError."""
    if option.default is False:
        return bool(told)
    text = "" if told is None else str(told)
    try:
        return option.read(text) if text.strip() else option.default
    except ValueError as error:
        raise UsageError(f"{flag(name)} {text}: {error}") from error


def changes(first: Options, now: Options) -> list[str]:
    """The options that the web form has changed since the process started, as they are typed."""
    typed = []
    for name, option in OPTIONS.items():
        if option.in_form and (value := getattr(now, name)) != getattr(first, name):
            text = ",".join(f"{rate:g}" for rate in value) if isinstance(value, tuple) else str(value)
            typed += [flag(name), option.default_text if value == option.default else text]
    return typed


def refuse(options: Options, names: Iterable[str], what: str) -> None:
    """Raises UsageError where one of some options is given, since what it is of is not."""
    for name in names:
        if options.given(name):
            raise UsageError(f"{flag(name)}: is of {what}, too")


def check(options: Options) -> None:
    """Do the options fit together, and those of TLS serve? Raises UsageError."""
    check_load(options)
    check_tls(options)
    check_servers(options)
    check_kubernetes(options)
    check_gate(options)


def check_servers(options: Options) -> None:
    """Do the options of servers fit together? Raises UsageError."""
    for name in ("emulate", "trace"):
        if getattr(options, name) and options.urls:
            raise UsageError(f"{flag(name)}: is of embedded servers; leave the URLs out, or {flag(name)}")
    if options.urls and any(options.links):
        raise UsageError(
            f"--link {options.link}: leads to embedded servers; leave the URLs out, or give --link none"
        )


def check_load(options: Options) -> None:
    """Do the options of open load fit together? Raises UsageError."""
    if options.load_profile and options.find_rate:
        raise UsageError("--load-profile: a search needs a rate that stays; leave it or --find-rate out")
    if options.find_rate and (options.repeats > 1 or len(options.rates) > 1):
        raise UsageError("--find-rate: searches once, from one rate; leave --repeats or further --rates out")
    if not options.find_rate and not options.rates:
        refuse(options, ("arrivals", "max_in_flight"), "open load; give --rates or --find-rate")


def check_kubernetes(options: Options) -> None:
    """Do the options of the Kubernetes API fit together? Raises UsageError."""
    if not options.kube_url:
        refuse(options, ("kube_namespace", "kube_deployment"), "the Kubernetes API; give --kube-url")
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
