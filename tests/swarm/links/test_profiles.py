"""Link profiles: what is packaged, what a user's file adds, and what no profile can be."""

from pathlib import Path

import pytest

from swarm.errors import UsageError
from swarm.links.profiles import LinkProfile, profiles_named, read_profiles

OWN = """
[lan]
about = "a slow cable"
one_way_ms = 0.5

[satellite]
one_way_ms = 270
mbit_per_s = 20.5
loss_pct = 1
queue_bytes = 500_000
congestion_control = "bbr"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "links.toml"


def test_the_packaged_profiles_are_the_published_paths_and_three_more() -> None:
    known = read_profiles()
    assert [*known] == ["lan", "wan-a100", "wan-rtx4090", "home", "clean-long"]
    about, published = "the published study's way to its A100", "step7-a100"
    wan = LinkProfile("wan-a100", about, published, 7, 210, 0.07, 1_000_000, congestion_control="cubic")
    assert known["wan-a100"] == wan
    assert known["wan-rtx4090"].published == "step7-rtx4090"
    assert [profile.rtt_ms for profile in known.values()] == [0, 14, 30, 20, 80]
    assert [profile.mbit_per_s for profile in known.values()] == [None, 210, 160, 50, 1000]


def test_a_profile_says_what_the_forwarder_does() -> None:
    known = read_profiles()
    both = {"delay_ns": 15_000_000, "ns_per_byte": 50.0, "queue_bytes": 1_000_000}
    assert known["wan-rtx4090"].lanes(1) == {"up": {**both, "loss": 0.07 / 100, "seed": "1-up"}, "down": both}
    assert [name for name, profile in known.items() if not profile.emulated] == ["lan"]


def test_a_policer_has_a_burst_and_no_queue(own: Path) -> None:
    own.write_text("[police]\nmbit_per_s = 40\nburst_bytes = 60_000")
    up = read_profiles(own)["police"].lanes(1)["up"]
    assert (up["ns_per_byte"], up["queue_bytes"], up["burst_bytes"]) == (200.0, 0, 60_000)


def test_a_users_file_adds_and_replaces(own: Path) -> None:
    own.write_text(OWN)
    known = read_profiles(own)
    assert [*known] == [*read_profiles(), "satellite"]
    assert known["lan"] == LinkProfile("lan", "a slow cable", one_way_ms=0.5)
    assert known["lan"].emulated
    assert known["satellite"] == LinkProfile(
        "satellite", "", "", 270, 20.5, 1, 500_000, congestion_control="bbr"
    )
    assert known["home"] == read_profiles()["home"]


def test_profiles_are_named_in_a_list() -> None:
    known = read_profiles()
    assert profiles_named(["wan-a100", "lan", "lan"], known) == [known["wan-a100"], known["lan"]]


RATE_AND_ROOM = "]: mbit_per_s needs queue_bytes (or burst_bytes, for a policer), and neither"
FIELDS = "about, published, one_way_ms, mbit_per_s, loss_pct, queue_bytes, burst_bytes, congestion_control"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("delay = 3", f" delay is not a field of a profile: use {FIELDS}"),
        ("one_way_ms = true", " one_way_ms = True: give a number of milliseconds, 0 to 2000"),
        ("one_way_ms = nan", " one_way_ms = nan: give a number of milliseconds, 0 to 2000"),
        ("one_way_ms = -1", " one_way_ms = -1: give a number of milliseconds, 0 to 2000"),
        (
            "mbit_per_s = 0",
            " mbit_per_s = 0: give a number of Mbit/s, 1 to 100000; leave it out for no limit",
        ),
        ("loss_pct = 100", " loss_pct = 100: give a percentage from 0 to below 100"),
        (
            "queue_bytes = 2e6",
            " queue_bytes = 2000000.0: give a whole number of bytes, 1500 (one packet) to 10",
        ),
        ("about = 7", " about = 7: give one line of text"),
        ("congestion_control = 'a b'", " congestion_control = 'a b': give a name such as cubic or bbr"),
        ("mbit_per_s = 5", RATE_AND_ROOM),
        ("queue_bytes = 5000", RATE_AND_ROOM),
        ("burst_bytes = 5000", RATE_AND_ROOM),
        (
            "mbit_per_s = 5\nqueue_bytes = 5000\nburst_bytes = 5000",
            " has queue_bytes and burst_bytes: a policer",
        ),
        ("about = 7 7", " is not TOML (Expected newline or end of document after a statement (at line 2"),
        ("[none]", "] has the reserved name for no link: choose another"),
        ("['a/b']", "] has a name that an option cannot take: use letters, digits, `-`, `_` and `.`"),
    ],
)
def test_what_no_profile_can_be_is_told(own: Path, text: str, said: str) -> None:
    own.write_text(text if text.startswith("[") else f"[x]\n{text}")
    with pytest.raises(UsageError) as raised:
        read_profiles(own)
    assert str(raised.value).startswith(str(own))
    assert said in str(raised.value)


def test_what_stands_outside_profiles_is_told(own: Path) -> None:
    own.write_text("x = 3")
    with pytest.raises(UsageError, match=r": \[x\] is not a profile: put x under a profile's \[NAME\]$"):
        read_profiles(own)


def test_a_file_that_is_not_there_is_told(own: Path) -> None:
    with pytest.raises(UsageError, match=r"links.toml cannot be read \(No such file or directory\): name a"):
        read_profiles(own)
