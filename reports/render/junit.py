"""junit.xml: verdicts as the test cases that GitLab, Jenkins and readers for GitHub show."""

from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reports.format import plain
from reports.gates.verdict import FAIL, PASS, Verdict

_NUMBERS = ("value", "low", "high", "bound", "tolerated", "runs", "more_repeats")
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def junit_text(verdicts: Sequence[Verdict], study: str, place: str) -> str:
    """The file; `place` is the file of thresholds, if the readers have it.

    A fail is a failure and what is inconclusive an error, since neither may look like a pass. A warning is
    skipped whatever came of it, unless it passed.
    """
    suite = Element("testsuite", {"name": plain(f"gates of {study}")})
    names = _names(verdicts)
    for verdict, name in zip(verdicts, names, strict=True):
        suite.append(_case(verdict, name, study, place))
    suite.attrib |= _counts(suite)
    whole = Element("testsuites", {"name": "inferswarm", **_counts(suite)})
    whole.append(suite)
    indent(whole)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(whole, encoding="unicode")}\n'


def _names(verdicts: Sequence[Verdict]) -> list[str]:
    """Titles, with the number of the threshold where two of one cell have the same: readers go by names."""
    often = Counter((verdict.cell, verdict.title) for verdict in verdicts)
    return [
        f"{it.title} (threshold {it.threshold})" if often[it.cell, it.title] > 1 else it.title
        for it in verdicts
    ]


def _counts(suite: Element) -> Mapping[str, str]:
    found = Counter(child.tag for case in suite for child in case)
    return {"tests": str(len(suite)), **{name: str(found[tag]) for tag, name in _COUNTED.items()}}


def _case(verdict: Verdict, name: str, study: str, place: str) -> Element:
    said = {"classname": f"{study}.{verdict.cell}", "name": name}
    said |= {"file": place, "line": str(verdict.line)} if place else {}
    case = Element("testcase", {key: plain(value) for key, value in said.items()})
    properties = SubElement(case, "properties")
    for number in _NUMBERS:
        if (value := getattr(verdict, number)) is not None:
            SubElement(properties, "property", {"name": number, "value": f"{value:.6g}"})
    told = plain(f"{verdict.sentence} {verdict.note}".rstrip())
    if verdict.outcome == PASS:
        SubElement(case, "system-out").text = told
    elif not verdict.serious:
        SubElement(case, "skipped", {"message": f"warning, {verdict.outcome}: {told}"})
    elif verdict.outcome == FAIL:
        SubElement(case, "failure", {"type": "threshold", "message": told}).text = told
    else:
        message = f"inconclusive: {told}"
        SubElement(case, "error", {"type": "inconclusive", "message": message}).text = message
    return case
