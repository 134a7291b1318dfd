"""Records that no study can have written: refused, and in no sum."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reports.__main__ import main
from tests.reports.damage import edited, small, with_each
from tests.reports.lines import Record

WRONG: list[tuple[str, Callable[[Record], Record], str]] = [
    ("window", edited(ok=-1), "line 6: ok is -1, and must be a whole number from 0"),
    ("window", edited(ok=7.5), "line 6: ok is 7.5, and must be a whole number from 0"),
    ("window", edited(ok=True), "line 6: ok is True, and must be a whole number from 0"),
    ("window", edited(ok="7"), "line 6: ok is '7', and must be a whole number from 0"),
    ("window", edited(failures={"timeout": -3}), "line 6: failures is {'timeout': -3}, and must be nowhere"),
    ("window", edited(worker=7), "line 6: worker is 7, and must be a text"),
    ("window", edited(histograms={}), "line 6: a window of 7 successes has no latency"),
    (
        "window",
        edited(ok=6),
        "holds (ValueError('a window of 6 successes has",
    ),
    ("drained", edited(finished="40"), "line 9: finished is '40', and must be a whole number from 0"),
    ("health", edited(cpu_pct=-40.0), "line 20: cpu_pct is -40.0, and must be nowhere negative"),
]


@pytest.mark.parametrize(("kind", "change", "sentence"), WRONG)
def test_counts_that_are_none_are_in_no_sum(
    *,
    kind: str,
    change: Callable[[Record], Record],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = with_each(tmp_path / "study", kind, change)
    assert main(["show", str(folder), "--quiet"]) == 2
    assert sentence in capsys.readouterr().err


def test_a_run_that_is_planned_twice_is_not_shown_as_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = small()
    book.header["plan"] *= 2
    assert main(["show", str(book.write(tmp_path)), "--quiet"]) == 2
    assert "repeat 1 of onnx-grpc/b1/c1 is planned twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch": 0}, "batch of a planned run is 0, and must be a whole number from 1"),
        (
            {"level": -8},
            "level of a planned run is -8, and must be a number of users or of requests",
        ),
        ({"load": "ajar"}, "load of a planned run is 'ajar', and must be closed or open"),
        ({"endpoint": 7}, "endpoint of a planned run is 7, and must be a text"),
        ({"channels": 7}, "channels of a planned run is 7, and must be a text"),
        ({"link": {}}, "link of a planned run is {}, and must be a text"),
        ({"workers": "4"}, "workers of a planned run is '4', and must be a number from 0"),
        ({"instances": -1}, "instances of a planned run is -1, and must be a number from 0"),
        ({"queue_delay_us": True}, "queue_delay_us of a planned run is True, and must be a number from 0"),
    ],
)
def test_a_plan_that_nobody_can_run_is_refused(
    changes: Record, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = small()
    book.header["plan"][0] |= changes
    assert main(["show", str(book.write(tmp_path)), "--quiet"]) == 2
    assert sentence in capsys.readouterr().err
