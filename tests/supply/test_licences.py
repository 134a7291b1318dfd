"""LICENSES.md says what the installed packages say, and bundled works have their texts beside them."""

from __future__ import annotations

from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from supply.licences import PAGE, ROOT, Row, licence_of, page, row_of, rows
from supply.lock import LOOSE

ASSETS = ROOT / "reports/render/assets"


class Said(Distribution):
    """A package that says this of itself."""

    def __init__(self, **fields: str) -> None:
        self._message = Message()
        for name, text in {"Name": "a", "Version": "1+cpu", **fields}.items():
            self._message[name.replace("_", "-")] = text

    @property
    def metadata(self) -> Message:  # type: ignore[override]
        return self._message

    def read_text(self, filename: str) -> str | None:
        return None

    def locate_file(self, path: object) -> Path:  # type: ignore[override]
        return Path(str(path))


def test_the_list_is_current() -> None:
    listed = PAGE.read_text().partition("## All\n")[2].splitlines()
    own = [row for row in rows() if row.name not in LOOSE]
    assert len(own) > 100
    assert [row.text for row in own if row.text not in listed] == []
    known = {row.name for row in own} | set(LOOSE)
    assert {line.split(" ")[1] for line in listed if line.startswith("| ") and "---" not in line} - known == {
        "package"
    }


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT", "License": "other"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: MIT License", "License": "other"}, "MIT License"),
        ({"License": "OSI Approved :: Apache Software License"}, "Apache Software License"),
        ({"License": "All of a text. " * 9}, ""),
        ({}, ""),
    ],
)
def test_what_a_package_says(fields: dict[str, str], licence: str) -> None:
    assert licence_of(Said(**fields)) == licence


@pytest.mark.parametrize(
    ("licence", "remark"),
    [
        ("MPL-2.0 AND MIT", "copyleft"),
        ("GNU General Public License v3", "copyleft"),
        ("LGPL-2.1", "copyleft"),
        ("BSD", "says not which"),
        ("", "says not which"),
        ("BSD-3-Clause", ""),
    ],
)
def test_what_needs_a_look_is_remarked(licence: str, remark: str) -> None:
    assert row_of(Said(License=licence), "a") == Row("a", "1", licence, remark)


def test_what_needs_a_look_stands_first() -> None:
    text = page([Row("a", "1", "MIT", ""), Row("b", "1", "", "says not which")])
    first, every = text.partition("## All")[::2]
    assert ("| b | 1 | not said | says not which |" in first, "| a | 1 |" in first) == (True, False)
    assert "| a | 1 | MIT |  |" in every


def test_the_bundled_charts_keep_their_notices() -> None:
    script = (ASSETS / "echarts.min.js").read_text()
    assert script.lstrip().startswith("/*\n* Licensed to the Apache Software Foundation (ASF)")
    texts = {
        "LICENSE": "Apache License", "NOTICE": "Apache ECharts", "LICENSE-d3": "Mike Bostock",
        "LICENSE-zrender": "BSD 3-Clause License",
    }  # fmt: skip
    for ending, words in texts.items():
        assert words in (ASSETS / f"echarts.{ending}").read_text()
        assert f"`echarts.{ending}`" in PAGE.read_text()
