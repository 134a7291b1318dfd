"""One sentence for the evidence of many runs: what they have in common, and the range of each number."""

from reports.topics.answer.evidence import in_short, ranged, wording


def test_the_same_words_with_other_numbers_become_ranges() -> None:
    said = [
        "compute took 80.2 of 96.4 ms a request; the model's one instance was executing 83.1 % of the time",
        "compute took 1,204 of 1,310 ms a request; the model's one instance was executing 100 % of the time",
        "compute took 90.0 of 99.0 ms a request; the model's one instance was executing 91.7 % of the time",
    ]
    assert ranged(said) == (
        "compute took 80.2 to 1,204 of 96.4 to 1,310 ms a request; "
        "the model's one instance was executing 83.1 to 100 % of the time"
    )


def test_numbers_are_compared_as_numbers_not_as_text() -> None:
    assert ranged(["waited 9.0 ms", "waited 10.0 ms"]) == "waited 9.0 to 10.0 ms"


def test_one_text_and_equal_texts_stay_as_they_are() -> None:
    assert ranged(["1 connection, busy 95 %"]) == "1 connection, busy 95 %"
    assert ranged(["1 connection, busy 95 %"] * 3) == "1 connection, busy 95 %"


def test_a_clause_that_some_do_not_have_is_left_out() -> None:
    said = ["the link sent 97 % of its rate; 3 segments were sent again", "the link sent 95 % of its rate"]
    assert ranged(said) == "the link sent 95 to 97 % of its rate"


def test_texts_without_a_clause_in_common_are_told_by_the_first() -> None:
    assert ranged(["worker w0 at 98 % CPU", "the loop lagged 4.1 ms"]) == "worker w0 at 98 % CPU"


def test_digits_within_a_name_are_no_number() -> None:
    assert ranged(["w1 used 90 % of a core", "w1 used 95 % of a core"]) == "w1 used 90 to 95 % of a core"
    assert ranged(["w1 used 90 %", "w2 used 90 %"]) == "w1 used 90 %"


def test_lists_of_numbers_are_united() -> None:
    said = ["first requests of batch 1, 4 were slow", "first requests of batch 2, 4, 16 were slow"]
    assert ranged(said) == "first requests of batch 1, 2, 4, 16 were slow"
    assert ranged([*said, "first requests of batch 8 were slow"]) == (
        "first requests of batch 1, 2, 4, 8, 16 were slow"
    )


def test_a_list_beside_a_number_of_another_form_is_united_too() -> None:
    assert ranged(["sizes 4, 2 failed", "sizes 1,024 failed", "sizes 0.5 failed"]) == (
        "sizes 0.5, 2, 4, 1,024 failed"
    )


def test_less_than_a_tenth_is_a_number() -> None:
    assert ranged(["waited <0.1 ms in the queue", "waited 3.2 ms in the queue"]) == (
        "waited <0.1 to 3.2 ms in the queue"
    )


def test_a_comma_that_parts_no_thousands_is_no_part_of_a_number() -> None:
    assert ranged(["it took 5, of which 3 waited", "it took 9, of which 3 waited"]) == (
        "it took 5 to 9, of which 3 waited"
    )


def test_the_wording_of_a_text_is_what_it_says_without_its_numbers() -> None:
    assert wording("w1 sent 1,204 of 96.4 MB in <0.1 s, batch 1, 2, 4") == "w1 sent # of # MB in # s, batch #"


BUSY = "took {} of 96 ms a request; one instance was executing {} % of the time; its queue was {} % full"


def test_in_short_it_is_the_first_clause_with_a_percentage_over_the_runs_that_have_it() -> None:
    said = [BUSY.format(80, busy, 10) for busy in (83, 100, 91)]
    assert in_short(said) == "one instance was executing 83 to 100 % of the time"
    assert in_short([*said, "the link sent 3 % of its rate"]) == (
        "one instance was executing 83 to 100 % of the time (in 3 of 4)"
    )


def test_in_short_a_clause_of_few_runs_does_not_speak_for_all() -> None:
    rare = "the host used 97 % of its cores; one instance was executing 70 % of the time"
    said = [rare, *(BUSY.format(80, busy, 10) for busy in (80, 85, 90))]
    assert in_short(said) == "one instance was executing 70 to 90 % of the time"


def test_in_short_without_a_percentage_it_is_the_first_clause() -> None:
    assert in_short(["took 80 of 96 ms a request; 4 users", "took 90 of 96 ms a request"]) == (
        "took 80 of 96 ms a request"
    )
    assert in_short(["1 connection, busy 95 %"]) == "1 connection, busy 95 %"
