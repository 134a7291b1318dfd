"""Links and hosts of a study: their tables, and what follows for the runs that went over them."""

from pathlib import Path
from typing import Any

import pytest

from reports.caveat import Caveat
from reports.study.study import Study, load_study
from reports.topics.runs.origins import clock, connected_to, endpoints, hosts, links, origins
from tests.reports.builder import Book
from tests.reports.contention_book import LAN, LINK, a_study, an_arm, axes_of
from tests.reports.example import example
from tests.reports.lines import FIRST_SECOND
from tests.reports.open_load import notes_at, texts
from tests.reports.strangers import a_book, stranger

MS = 1_000_000
FACTS = {
    **{"hostname": "box", "python": "3.11.9", "packages": {"locust": "2.47.0"}, "cores": 2},
    **{"commit": "0123456789ab+", "load": 0.5, "files_soft": 1_048_576},
    **{"clock_offset_ns": -120_000, "clock_doubt_ns": 40_000},
}


def studied(folder: Path, **header: Any) -> Study:
    return load_study(a_study(**header).write(folder))


def test_a_link_is_shown_as_asked_and_as_measured_by_each_host(tmp_path: Path) -> None:
    measured = {"h1": LINK["measured"]["h1"], "h2": {"rtt_ms": 14.2}}
    differs = LINK | {"measured": measured, "differences": ["Rate: 150 Mbit/s, 210 asked."]}
    table = links(studied(tmp_path, links=[differs, LAN]))
    shape = ["1,000", "cubic", "step7-a100"]
    assert texts(table) == [
        ["wan-a100", "h1", "14.0", "14.1", "210", "209", "0.0700", "0.0600", *shape],
        ["wan-a100", "h2", "14.0", "14.2", "210", "–", "0.0700", "–", *shape],
        ["lan", "–", "0", "–", "–", "–", "0", "–", "–", "–", "–"],
    ]
    assert notes_at(table, 0, 0) == ["Rate: 150 Mbit/s, 210 asked."]
    assert table.caption.endswith("Emulated by tun.")


def test_a_policer_shows_its_burst(tmp_path: Path) -> None:
    policer = LINK | {"queue_bytes": 0, "burst_bytes": 60_000}
    table = links(studied(tmp_path, links=[policer]))
    assert (str(table.heads[8]), texts(table)[0][8]) == ("queue or burst kB", "60.0")


def test_a_host_tells_of_itself_and_what_it_does_not_is_a_dash(tmp_path: Path) -> None:
    told = {"name": "h1", "kind": "netns", "workers": 4, "facts": FACTS}
    table = hosts(studied(tmp_path, hosts=[told, {"name": "far", "kind": "ssh"}]))
    assert texts(table) == [
        [
            *("h1", "netns", "4", "box", "2", "0.500", "3.11.9", "2.47.0"),
            *("0123456789ab+", "1048576", "−0.120 ± 0.0400"),
        ],
        ["far", "ssh", *["–"] * 9],
    ]


def test_hosts_of_workers_that_others_started_are_named(tmp_path: Path) -> None:
    book = example()
    for record in book.records:
        if record.get("event") == "start":
            record |= {"workers": ["w0", "w1", "w2"], "hosts": 2, "places": ["node-a", "node-b", "node-a"]}
    table = hosts(load_study(book.write(tmp_path)))
    assert (list(table.heads), texts(table)) == (["host", "workers"], [["node-a", "2"], ["node-b", "1"]])


@pytest.mark.parametrize(
    ("offset_ns", "doubt_ns", "text"), [(None, None, "–"), (2 * MS, None, "2.00"), (0, 50_000, "0 ± 0.0500")]
)
def test_a_clock_is_off_with_its_doubt(offset_ns: float | None, doubt_ns: float | None, text: str) -> None:
    assert clock(offset_ns, doubt_ns) == text


def test_older_studies_have_no_such_tables(tmp_path: Path) -> None:
    study = load_study(example().write(tmp_path))
    assert (links(study).rows, hosts(study).rows) == ((), ())
    assert "What is sent and read" not in [table.title for table in origins(study)]


def doubts(study: Study, code: str) -> list[list[Caveat]]:
    return [[doubt for doubt in run.caveats if doubt.code == code] for run in study.runs]


def test_a_link_that_is_not_as_asked_is_doubted_in_every_run_over_it(tmp_path: Path) -> None:
    book = a_study(links=[LINK | {"differences": ["150 Mbit/s, 210 asked.", "no loss."]}, LAN])
    an_arm(book, "R0", 42.0)
    an_arm(book, "R0", 400.0, link="lan")
    over_wan, over_lan = doubts(load_study(book.write(tmp_path)), "link-differs")
    assert [doubt.text for doubt in over_wan] == ["wan-a100: 150 Mbit/s, 210 asked; no loss"]
    assert over_lan == []
    assert not over_wan[0].tainted


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"workers": 4}, "workers asked for: 4, used: 1"),
        ({"workers": 4, "hosts": 2}, "workers asked for: 4, used: 1; hosts asked for: 2, used: 1"),
        ({"workers": 0, "hosts": 0}, None),
        ({"workers": 1, "hosts": 1}, None),
    ],
)
def test_another_topology_disqualifies(tmp_path: Path, asked: dict[str, int], text: str | None) -> None:
    book = Book()
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 50}, axes=axes_of("R2", "", many=False) | asked)
    study = load_study(book.write(tmp_path))
    assert [doubt.text for doubt in doubts(study, "topology-differs")[0]] == ([text] if text else [])
    assert study.runs[0].tainted == (text is not None)


def test_a_links_own_rate_takes_the_place_of_the_option(tmp_path: Path) -> None:
    book = a_study(options={"link_mbit": 1_000})
    an_arm(book, "R0", 42.0)
    an_arm(book, "R0", 400.0, link="lan")
    book.add("onnx-http", 1, 1, {"w0": [MS] * 50})
    rates = [run.link_bytes_per_s for run in load_study(book.write(tmp_path)).runs]
    assert rates == [210e6 / 8, None, 1_000e6 / 8]


def test_how_endpoints_are_asked_is_shown_as_far_as_the_header_says(tmp_path: Path) -> None:
    book = a_book()
    about = {
        "inputs": ["pixels FP16 [3, 384, 384] picture", "scale FP32 [1] random"],
        **{"prepare": "siglip", "output": "embeds", "dimension": 768, "max_batch": 8},
    }
    stranger(book, "whole", about)
    stranger(book, "bare")
    book.endpoint("older", "127.0.0.1:8010")
    study = load_study(book.write(tmp_path))
    table = next(table for table in origins(study) if table.title == "What is sent and read")
    assert texts(table) == [
        [
            *("whole", "v2-binary", "siglip"),
            "pixels FP16 [3, 384, 384] picture, scale FP32 [1] random",
            *("siglip", "embeds, 768", "8"),
        ],
        ["bare", "v2-binary", "siglip", "–", "–", "–", "–"],
    ]


@pytest.mark.parametrize(
    ("peers", "used"), [({"10.0.0.6": 2}, "10.0.0.6"), ({"b": 1, "a": 1}, "a, b"), ({}, "")]
)
def test_which_of_a_names_addresses_was_used(tmp_path: Path, peers: dict[str, int], used: str) -> None:
    book = Book()
    tag = book.add("onnx-http", 2, 3, {"w0": [20_000_000] * 100})
    book.path(tag, "w0", FIRST_SECOND, connections=2, **({"peers": peers} if peers else {}))
    study = load_study(book.write(tmp_path))
    assert connected_to(study, "onnx-http") == used
    assert ("connected to" in endpoints(study).heads) == bool(used and study.described)
