"""hosts.toml: the places that client processes run on."""

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reports.ledger.files import parsed_toml, whole_file
from swarm.errors import UsageError

MOST_HOSTS = 250
"""On one machine: each has its own address in one network."""
COMMON = ("name", "kind", "workers")
FIELDS = {
    "process": COMMON,
    "netns": COMMON,
    "ssh": (*COMMON, "address", "port", "identity", "path", "python"),
}
"""The fields that a host of each kind may have."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
# Nothing that ssh takes for an option, or that a shell in a ProxyCommand would interpret.
WORD = r"""(?!-)[^\s@'"`$\\;&<>|(){}]+"""
Rule = tuple[re.Pattern[str] | range, str]
TEXT: Rule = (re.compile(".+"), "give it a text in quotes")
RULES: dict[str, Rule] = {
    "name": (NAME, "give it a name of letters, digits and -"),
    "workers": (range(1, sys.maxsize), "give it a whole number from 1, or leave it out"),
    "address": (
        re.compile(f"(?:{WORD}@)?{WORD}"),
        "give it HOST or USER@HOST, as ssh takes it, without a leading -",
    ),
    "port": (range(1, 65536), "give it a whole number from 1 to 65535, or leave it out"),
    "path": (
        re.compile("~(?:/.*)?|[^~].*"),
        "give it a folder relative to the user's home there, or an absolute one",
    ),
    "python": (
        re.compile("(?![~-])(?:.*/)?python[0-9.]*"),
        "give it a command such as python3.11, or an absolute path to one",
    ),
}
"""By field: the pattern of its text, or its range of numbers, and the fix; `TEXT` for all others."""


@dataclass(frozen=True)
class HostSpec:
    """A host as hosts.toml describes it; `workers` is None where the run decides.

    `identity` is an absolute path here, or empty; `path` is a folder there, from the user's home. `config` is
    what ssh's -F takes, which no file says: ssh runs commands that stand in it.
    """

    name: str
    kind: str
    workers: int | None = None
    address: str = ""
    port: int | None = None
    identity: str = ""
    config: str = ""
    path: str = "inferswarm"
    python: str = "python3"


def hosts_named(text: str, apart: bool = False, ssh_config: str = "") -> list[HostSpec]:
    """`2` hosts on this machine, `h1` and `h2`, or those of a file. Raises UsageError.

    Where there are several on one machine, or they must be `apart`, each has an address of its own.
    """
    if not text.isdecimal():
        return read_hosts(Path(text), ssh_config)
    if len(text) > len(str(MOST_HOSTS)) or not 1 <= int(text) <= MOST_HOSTS:
        raise UsageError(f"{text} hosts: give 1 to {MOST_HOSTS}, or a hosts.toml")
    kind = "netns" if apart or int(text) > 1 else "process"
    return [HostSpec(f"h{number}", kind) for number in range(1, int(text) + 1)]


def add_ssh_config(parser: argparse.ArgumentParser) -> None:
    """Adds the option with the configuration of ssh, which is the operator's to name."""
    parser.add_argument(
        "--ssh-config",
        default="",
        metavar="FILE",
        help="what ssh's -F takes, for the ssh hosts of a hosts file: a file that you trust, as ssh runs"
        " commands "
        "that it names (default: ssh's own)",
    )


def read_hosts(path: Path, ssh_config: str = "") -> list[HostSpec]:
    """The hosts of a file, at least one. Raises UsageError, which names file, host, field and fix."""
    table = _load(path)
    config = _checked_config(ssh_config, path)
    unknown = sorted(table.keys() - {"host"})
    if unknown:
        raise UsageError(
            f"{path}: {unknown[0]} is unknown: every host is a [[host]] table with its own fields"
        )
    entries = table.get("host", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(f"{path}: host is a single table: write [[host]], once for each host")
    if not entries:
        raise UsageError(
            f'{path}: it defines no hosts: add a [[host]] with name = "near" and kind = "process"'
        )
    specs = [
        replace(_spec(entry, _place(path, entry, number), path), config=config)
        for number, entry in enumerate(entries, 1)
    ]
    for name, times in Counter(spec.name for spec in specs).items():
        if times > 1:
            raise UsageError(f"{path}: {times} hosts have the name {name}: give each host its own name")
    return specs


def _checked_config(ssh_config: str, path: Path) -> str:
    if not ssh_config:
        return ""
    try:
        if os.path.samefile(ssh_config, path):
            raise UsageError(f"--ssh-config {ssh_config}: is the hosts file: name an ssh configuration file")
        whole_file(ssh_config)
    except OSError as error:
        raise UsageError(
            f"--ssh-config {ssh_config}: cannot be read ({error.strerror}): name another"
        ) from None
    return os.path.abspath(ssh_config)


def _load(path: Path) -> dict[str, Any]:
    try:
        return parsed_toml(whole_file(path).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}): name the file of your hosts") from None
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from None


def _place(path: Path, entry: Mapping[str, Any], number: int) -> str:
    name = entry.get("name")
    return f"{path}: host {name if isinstance(name, str) and NAME.fullmatch(name) else number}"


def _spec(entry: dict[str, Any], place: str, file: Path) -> HostSpec:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise UsageError(f"{place}: kind={_shown(kind)}: choose one of {', '.join(FIELDS)}")
    known = FIELDS[kind]
    for field, value in entry.items():
        if field == "config" and kind == "ssh":
            raise UsageError(
                f"{place}: config cannot be set in a hosts file, as ssh runs commands in it: give "
                "--ssh-config FILE"
            )
        if field not in known:
            raise UsageError(f"{place}: {field} is unknown: a host of kind {kind} takes {', '.join(known)}")
        rule, fix = RULES.get(field, TEXT)
        if not _fits(value, rule):
            raise UsageError(f"{place}: {field}={_shown(value)}: {fix}")
    for field in ("name", "address"):
        if field in known and field not in entry:
            raise UsageError(f"{place}: {field} is missing: {RULES[field][1]}")
    return _resolved(HostSpec(**entry), file.absolute().parent)


def _resolved(spec: HostSpec, folder: Path) -> HostSpec:
    """With paths here absolute, and the path there as it is from the user's home, where ssh begins."""

    def absolute(path: str) -> str:
        # Path's own raises where there is no such user.
        return str(folder / os.path.expanduser(path)) if path else ""

    there = spec.path.removeprefix("~/") if spec.path != "~" else "."
    return replace(spec, identity=absolute(spec.identity), path=there)


def _shown(value: Any) -> str:
    """As it stands in the file, on one line."""
    return "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _fits(value: Any, rule: re.Pattern[str] | range) -> bool:
    if isinstance(rule, range):
        return type(value) is int and value in rule
    return isinstance(value, str) and value.isprintable() and bool(value.strip() and rule.fullmatch(value))
