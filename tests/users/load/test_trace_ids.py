"""Which requests carry a traceparent, and under which ids."""

import pytest

from users.load.trace_ids import TraceIds, span_of, traceparent


def chosen(ids: TraceIds, numbers: range) -> list[int]:
    return [number for number in numbers if ids(number)]


@pytest.mark.parametrize(
    ("share", "of_3000"), [(1.0, 3_000), (0.1, 300), (0.01, 30), (0.001, 3), (0.0005, 2)]
)
def test_each_thousand_has_its_share(share: float, of_3000: int) -> None:
    whole = chosen(TraceIds(share, "7"), range(3_000))
    assert len(whole) == of_3000
    if share == 0.1:
        assert [sum(first <= n < first + 1_000 for n in whole) for first in range(0, 3_000, 1_000)] == [
            100
        ] * 3
        assert {n % 10 for n in whole} == set(range(10)), "at random places"


def test_the_choice_follows_from_the_seed_and_the_number_whoever_sends_it() -> None:
    whole = chosen(TraceIds(0.1, "7"), range(2_000))
    assert whole == chosen(TraceIds(0.1, "7"), range(2_000)) != chosen(TraceIds(0.1, "8"), range(2_000))
    of_two = [chosen(TraceIds(0.1, "7"), range(index, 2_000, 2)) for index in range(2)]
    assert sorted(of_two[0] + of_two[1]) == whole


def test_ids_are_new_each_time() -> None:
    found = [ids(number) for ids in (TraceIds(1.0, "7"), TraceIds(1.0, "7")) for number in range(500)]
    assert len(set(found)) == len({span_of(one) for one in found}) == 1_000
    assert {len(one) for one in found} == {32}


def test_the_header_has_the_forms_of_w3c() -> None:
    trace_id = TraceIds(1.0, "7")(0)
    version, trace, parent, flags = traceparent(trace_id).split("-")
    assert (version, trace, parent, flags) == ("00", trace_id, trace_id[16:], "01")
