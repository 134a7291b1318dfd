"""What --slo says: within how many ms a request is good, and which share must be."""

import pytest

from reports.slo import Slo

MS = 1_000_000


@pytest.mark.parametrize(
    ("text", "said", "share", "limits_ms"),
    [
        ("p99<=100", "p99 ≤ 100 ms", 0.99, {"": 100, "b16": 100}),
        (" p99.9 <= 2.5 ms ", "p99.9 ≤ 2.5 ms", 0.999, {"": 2.5, "b1/640px": 2.5}),
        (
            "p95<=100,b16:p95<=400, b16/224px : p95<=300",
            "p95 ≤ 100 ms, b16 p95 ≤ 400 ms, b16/224px p95 ≤ 300 ms",
            0.95,
            # a whole label goes before a part of one, and b1 is no part of b16
            {"b1": 100, "b16": 400, "b16/640px": 400, "b16/224px": 300, "": 100},
        ),
    ],
)
def test_a_class_has_its_own_limit_or_that_of_all(
    text: str, said: str, share: float, limits_ms: dict[str, float]
) -> None:
    slo = Slo.parse(text)
    assert (str(slo), slo.share) == (said, share)
    assert {label: slo.limit_ns(label) / MS for label in limits_ms} == limits_ms


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "name the percentile too") for text in ("100", "<=100", "<= 100 ms", "p99<=100,b16:400")),
        *((text, "give p50, p90, p95, p99") for text in ("", "p98<=5", "p99<=0", "p99<=100;", "b4:fast")),
        ("b16:p99<=400", "give one bound for all requests"),
        ("p99<=100,p99<=200", "give one bound for all requests"),
        ("p99<=100,b4:p99<=200,b4:p99<=300", "give each class one bound"),
        ("p99<=100,b4:p95<=200", "give all bounds the same percentile"),
    ],
)
def test_what_is_no_objective(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Slo.parse(text)
