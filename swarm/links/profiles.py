"""Profiles: paths between clients and servers by name, and what they do to packets.

Some are packaged, others come from a file of the user's own.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reports.ledger.axes import NO_LINK
from reports.ledger.files import parsed_toml, whole_file
from swarm.errors import UsageError

PACKAGED = Path(__file__).with_name("profiles.toml")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class LinkProfile:
    """A path by name; the rate counts IP packets and holds for each direction by itself.

    `mbit_per_s` None is no limit, `queue_bytes` is then 0. Packets are lost from client to server. With
    `burst_bytes` the rate is a policer's: nothing waits, and what comes above rate and burst is dropped.
    Congestion control holds for both ends. `published` is the published study that it stands for, or "".
    """

    name: str
    about: str = ""
    published: str = ""
    one_way_ms: float = 0.0
    mbit_per_s: float | None = None
    loss_pct: float = 0.0
    queue_bytes: int = 0
    burst_bytes: int = 0
    congestion_control: str = "cubic"

    @property
    def rtt_ms(self) -> float:
        """A round trip's milliseconds, with nothing waiting."""
        return 2 * self.one_way_ms

    @property
    def emulated(self) -> bool:
        """Whether the path does anything to what it carries."""
        return bool(self.one_way_ms or self.mbit_per_s or self.loss_pct)

    def lanes(self, seed: int) -> dict[str, dict[str, Any]]:
        """The forwarder's two directions, `up` from client to server and `down` back."""
        both = {
            "delay_ns": round(self.one_way_ms * 1e6),
            "ns_per_byte": 8_000 / self.mbit_per_s if self.mbit_per_s else 0.0,
            "queue_bytes": self.queue_bytes,
            **({"burst_bytes": self.burst_bytes} if self.burst_bytes else {}),
        }
        return {"up": {**both, "loss": self.loss_pct / 100, "seed": f"{seed}-up"}, "down": both}


FIELDS: dict[str, tuple[tuple[type, ...], Callable[[Any], bool], str]] = {
    "about": ((str,), str.isprintable, "one line of text"),
    "published": ((str,), str.isprintable, "one line of text"),
    "one_way_ms": ((int, float), lambda ms: 0 <= ms <= 2000, "a number of milliseconds, 0 to 2000"),
    "mbit_per_s": (
        (int, float),
        lambda rate: 1 <= rate <= 1e5,
        "a number of Mbit/s, 1 to 100000; leave it out for no limit",
    ),
    "loss_pct": ((int, float), lambda share: 0 <= share < 100, "a percentage from 0 to below 100"),
    "queue_bytes": (
        (int,),
        lambda size: 1500 <= size <= 10**9,
        "a whole number of bytes, 1500 (one packet) to 1000000000",
    ),
    "burst_bytes": (
        (int,),
        lambda size: 1500 <= size <= 10**9,
        "a whole number of bytes, 1500 (one packet) to 1000000000",
    ),
    "congestion_control": (
        (str,),
        lambda name: re.fullmatch("[a-z0-9_]+", name) is not None,
        "a name such as cubic or bbr",
    ),
}
"""A profile's fields: their types, a check, and the text of what is allowed."""
assert [*FIELDS] == [field.name for field in fields(LinkProfile)][1:]


def read_profiles(file: Path | None = None) -> dict[str, LinkProfile]:
    """Packaged profiles by name; a file's are added or replace them. UsageError: place, field and fix."""
    found = _read(PACKAGED)
    return found if file is None else {**found, **_read(file)}


def profiles_named(names: Iterable[str], known: Mapping[str, LinkProfile]) -> list[LinkProfile]:
    """The profiles of these names, each once. Raises UsageError naming the known ones."""
    found = dict.fromkeys(names)
    for name in found:
        if name not in known:
            raise UsageError(f"there is no link named {name!r}: choose from {', '.join(known)}")
    return [known[name] for name in found]


def _read(file: Path) -> dict[str, LinkProfile]:
    try:
        tables = parsed_toml(whole_file(file).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}): name a file of link profiles") from None
    except ValueError as error:
        raise UsageError(f"{file} is not TOML ({error}): fix that line") from None
    return {name: _profile(f"{file}: [{name}]", name, table) for name, table in tables.items()}


def _profile(place: str, name: str, table: Any) -> LinkProfile:
    if not isinstance(table, dict):
        raise UsageError(f"{place} is not a profile: put {name} under a profile's [NAME]")
    if name == NO_LINK:
        raise UsageError(f"{place} has the reserved name for no link: choose another")
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{place} has a name that an option cannot take: use letters, digits, `-`, `_` and `.`"
        )
    for field, value in table.items():
        _check(place, field, value)
    profile = LinkProfile(name, **table)
    if profile.queue_bytes and profile.burst_bytes:
        raise UsageError(f"{place} has queue_bytes and burst_bytes: a policer has no queue, give one of them")
    if bool(profile.mbit_per_s) != bool(profile.queue_bytes or profile.burst_bytes):
        raise UsageError(
            f"{place}: mbit_per_s needs queue_bytes (or burst_bytes, for a policer), and neither stands "
            "without mbit_per_s"
        )
    return profile


def _check(place: str, name: str, value: Any) -> None:
    if name not in FIELDS:
        raise UsageError(f"{place} {name} is not a field of a profile: use {', '.join(FIELDS)}")
    # A truth value is a number to Python, and not-a-number fails every comparison.
    types, holds, wanted = FIELDS[name]
    if isinstance(value, bool) or not isinstance(value, types) or not holds(value):
        raise UsageError(f"{place} {name} = {value!r}: give {wanted}")
