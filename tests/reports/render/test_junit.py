"""junit.xml as CI systems read it: counts, what is no pass, names that differ, and no forbidden character."""

from dataclasses import replace
from xml.etree import ElementTree

from reports.render.junit import junit_text
from tests.reports.gates.outcomes import ALL, EVIL, FAILED, MADE, UNSURE, WARNED, evil


def cases(text: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(text).iter("testcase"))


def test_counts_stand_on_both_levels() -> None:
    whole = ElementTree.fromstring(junit_text(ALL, "step7", "ci/thresholds.toml"))
    (suite,) = whole
    counts = {"tests": "5", "failures": "1", "errors": "2", "skipped": "1"}
    assert counts.items() <= whole.attrib.items()
    assert counts.items() <= suite.attrib.items()
    assert suite.attrib["name"] == "gates of step7"


def test_only_a_pass_looks_like_one() -> None:
    passed, warned, missing, unsure, failed = cases(junit_text(ALL, "step7", ""))
    assert [child.tag for child in passed] == ["properties", "system-out"]
    assert passed.findtext("system-out") == MADE.sentence
    assert warned[-1].attrib["message"] == f"warning, fail: {WARNED.sentence}"
    assert (warned[-1].tag, missing[-1].tag, unsure[-1].tag, failed[-1].tag) == (
        *("skipped", "error"),
        *("error", "failure"),
    )
    told = f"inconclusive: {UNSURE.sentence} {UNSURE.note}"
    assert (unsure[-1].attrib["message"], unsure[-1].text) == (told, told)
    assert failed[-1].attrib["message"] == FAILED.sentence


def test_a_case_says_where_its_threshold_stands_and_its_numbers() -> None:
    (case,) = cases(junit_text([UNSURE], "step7", "ci/thresholds.toml"))
    assert case.attrib == {
        "classname": "step7.onnx-grpc/b1/c1 / onnx-http/b1/c1",
        "name": "gRPC keeps up",
        "file": "ci/thresholds.toml",
        "line": "7",
    }
    assert {it.attrib["name"]: it.attrib["value"] for it in case.iter("property")} == {
        **{"value": "0.93", "low": "0.88", "high": "0.98", "bound": "0.95", "tolerated": "0.904762"},
        **{"runs": "5", "more_repeats": "4"},
    }
    (nowhere,) = cases(junit_text([UNSURE], "step7", ""))
    assert not {"file", "line"} & set(nowhere.attrib)


def test_two_of_the_same_name_are_told_apart() -> None:
    same = [MADE, replace(MADE, threshold=2), FAILED]
    named = [(case.attrib["classname"], case.attrib["name"]) for case in cases(junit_text(same, "s", ""))]
    assert named == [
        ("s.onnx-http/b1/c1", "latency_p95_ms <= 120 (threshold 1)"),
        ("s.onnx-http/b1/c1", "latency_p95_ms <= 120 (threshold 2)"),
        ("s.onnx-grpc/b1/c1", "latency_p95_ms <= 120"),
    ]


def test_whatever_a_text_is_the_file_is_xml() -> None:
    text = junit_text([evil(verdict) for verdict in ALL], EVIL, EVIL)
    assert len(cases(text)) == len(ALL)
    assert "<script" not in text
    assert not {"\x1b", "\x00"} & set(text)


def test_nothing_judged_is_a_file_too() -> None:
    assert ElementTree.fromstring(junit_text([], "step7", ""))[0].attrib["tests"] == "0"
