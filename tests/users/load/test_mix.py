"""Mixes: exact shares in a seeded order that workers share; what is no mix."""

import itertools
from collections import Counter

import pytest

from users.load.mix import (
    BLOCK,
    GIVE,
    ClassSequence,
    Mix,
    RequestClass,
    chosen_by,
    mix_of,
    parse_batches,
    parse_shares,
)

MIXES = [
    "1:0.7,4:0.2,16:0.1",
    "1:0.999,64:0.001",
    "1:0.3333333,2:0.3333333,3:0.3333334",
    "8:1",
    "1:0.0105,2:0.9895",
]
BATCHES, PICTURES = "1:0.7,4:0.2,16:0.1", "small:0.7,large:0.3"


def labels(mix: Mix, count: int, seed: str = "3/1/measure/order") -> list[str]:
    order = mix.ordered(seed)
    return [order.at(number)[0] for number in range(count)]


def mixed(text: str) -> Mix:
    made = mix_of(text, "", 16)
    assert made is not None
    return made


@pytest.mark.parametrize("text", MIXES)
def test_at_the_end_of_each_block_every_class_has_its_share_to_within_one_request(text: str) -> None:
    mix = mixed(text)
    sent = labels(mix, 10 * BLOCK)
    for begin in range(0, len(sent), BLOCK):
        block, so_far = Counter(sent[begin : begin + BLOCK]), Counter(sent[: begin + BLOCK])
        for one in mix.classes:
            assert abs(so_far[one.label] - one.share * (begin + BLOCK)) <= 1
            assert abs(block[one.label] - one.share * BLOCK) <= 2
    for one in mix.classes:
        assert Counter(sent)[one.label] / len(sent) == pytest.approx(one.share, rel=0.01)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_send_one_sequence_whatever_their_number(workers: int) -> None:
    mix = mixed(BATCHES)
    dealt: dict[int, tuple[str, int]] = {}
    for index in range(workers):
        order = mix.ordered("seed")
        dealt |= {number: order.at(number) for number in range(index, 3_500, workers)}
    whole = labels(mix, 3_500, "seed")
    assert [dealt[number] for number in range(3_500)] == [(label, n) for n, label in enumerate(whole)]


def test_a_sequence_is_of_its_seed_and_may_be_asked_in_any_order() -> None:
    mix = mixed(BATCHES)
    sent = labels(mix, 2_500)
    order = mix.ordered("3/1/measure/order")
    assert [order.at(number)[0] for number in (2_400, 0, 1_000, 999)] == [
        sent[n] for n in (2_400, 0, 1_000, 999)
    ]
    assert labels(mix, 100, "4/1/measure/order") != sent[:100]
    assert sent[:BLOCK] != sent[BLOCK : 2 * BLOCK], "blocks are shuffled apart"


def test_runs_of_a_class_are_as_long_as_a_shuffle_makes_them() -> None:
    """Of share p, runs have a mean length of 1 / (1 - p), and one in every ten at p = 0.1 has two or more."""
    sent = labels(mixed(BATCHES), 50 * BLOCK)
    runs = [(label, len(list(of))) for label, of in itertools.groupby(sent)]
    for label, share in (("b1", 0.7), ("b4", 0.2), ("b16", 0.1)):
        own = [length for found, length in runs if found == label]
        assert sum(own) / len(own) == pytest.approx(1 / (1 - share), rel=0.03)
        assert sum(length > 1 for length in own) / len(own) == pytest.approx(share, rel=0.06)


def test_the_classes_of_a_mix() -> None:
    assert mixed(BATCHES).classes == (
        *(RequestClass("b1", 0.7, 1), RequestClass("b4", 0.2, 4)),
        RequestClass("b16", 0.1, 16),
    )
    assert mix_of("", "640:0.5,large:0.5", 8) == Mix(
        (RequestClass("640px", 0.5, 8, "640"), RequestClass("large", 0.5, 8, "large"))
    )
    both = mix_of("1:0.5,2:0.5", "224:0.8,cats:0.2", 2)
    assert both is not None
    assert [(one.label, one.share, one.batch, one.picture) for one in both.classes] == [
        *(("b1/224px", 0.4, 1, "224"), ("b1/cats", 0.1, 1, "cats")),
        *(("b2/224px", 0.4, 2, "224"), ("b2/cats", 0.1, 2, "cats")),
    ]
    assert mix_of("", "", 4) is None


NOT_SHARES = [
    *("", "1", "a:", ":1", ":0.5,a:0.5", "a:x,b:0.5", "a:0.5,,b:0.5", "a:0,b:1", "a:-0.5,b:1.5"),
    *("a:nan,b:1", "a:inf,b:1"),
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, f"{GIVE} a:0.7,b:0.3") for text in NOT_SHARES),
        ("a:0.7,b:0.2", f"{GIVE} a:0.7,b:0.3; these add up to 0.9"),
        ("a:0.7,b:0.30001", f"{GIVE} a:0.7,b:0.3; these add up to 1.00001"),
        ("a:0.5, a:0.5", "name each once"),
        (",".join(f"k{n}:{1 / 33}" for n in range(33)), "give at most 32 of them"),
        ("a:0.9995,b:0.0005", "give shares of which none is below 0.001"),
    ],
)
def test_what_are_no_shares(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_shares(text, "a:0.7,b:0.3")
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(
            (text, f"give items in a request from 1 to 4,096 with their shares, e.g. {BATCHES}")
            for text in ("0:1", "4097:1", "-1:1", "1.5:1", "a:0.5,2:0.5", "²:1", "٣:1", "1:0.5,01:0.5")
        ),
        ("1:0.5,1:0.5", "name each once"),
        ("1:0.5", f"{GIVE} {BATCHES}; these add up to 0.5"),
    ],
)
def test_what_is_no_mix_of_batches(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_batches(text)
    assert str(caught.value) == said


def test_shares_may_be_rounded_and_spaced() -> None:
    assert parse_shares("a:0.333333, b : 0.666667", "") == {"a": 0.333333, "b": 0.666667}
    assert parse_batches("4096:0.25,1:0.75") == {4096: 0.25, 1: 0.75}


def test_what_is_no_mix_of_both() -> None:
    with pytest.raises(ValueError, match=r"none is below 0\.001, mixed with each other, too$"):
        mix_of("1:0.98,2:0.02", "a:0.96,b:0.04", 2)
    least = mix_of("1:0.9,2:0.1", "a:0.99,b:0.01", 2)
    assert least is not None
    assert min(one.share for one in least.classes) == pytest.approx(0.001)
    with pytest.raises(ValueError, match=rf"{PICTURES}; these add up to 0\.7$"):
        mix_of("", "a:0.7", 1)
    six, seven = (",".join(f"{name}:{1 / count:.7g}" for name in range(1, count + 1)) for count in (6, 7))
    with pytest.raises(ValueError, match=r"^give at most 32 pairs of a batch and a kind of picture$"):
        mix_of(six, seven, 1)


def test_who_gets_an_arrival_of_a_schedule() -> None:
    assert chosen_by({}) is None
    orders = {"shares": [0.9, 0.1], "split_seed": "s"}
    choices = [chosen_by({**orders, "part": part}) for part in range(2)]
    sequence = ClassSequence([0.9, 0.1], "s")
    for number in range(2_000):
        taken = [choice is not None and choice(number) for choice in choices]
        assert taken == [sequence(number) == part for part in range(2)]
