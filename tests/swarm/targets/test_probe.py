"""What a probe reads from the answers of an endpoint, and the file that it writes of it."""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swarm.errors import UsageError
from swarm.targets.probe import Probed, asked, command, lines, toml_of, write
from tests.pictures import image_set
from tests.swarm.options.test_parse import options
from tests.swarm.targets.test_preflight import answering, each
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.transport.base import Reply

PIXELS = Input("pixel_values", "FP16", (384, 384, 3), "picture", "NHWC")
FOUND = Contract((PIXELS,), output="embeds", dimension=2, unit=True, max_batch=8, guesses=("It is.",))
SIGLIP = Endpoint("old", "triton", "grpc", "fp16", "gpu:8001", "siglip", version="2", codec="v2-grpc")
SIGLIP = replace(SIGLIP, space="towers", contract=FOUND)
FIRST, SECOND = [1.0, 0.0], [0.6, 0.8]
UNLIKE = "2 rows, but they differ from those of the single items"


def reply(*rows: list[float], **server_ns: int) -> Reply:
    return Reply(np.array(rows, dtype=np.float32), 9, server_ns=server_ns)


def told(two: Reply | str, endpoint: Endpoint = SIGLIP, one: Reply | None = None) -> dict[str, str]:
    """What is printed, by the first words of the lines."""
    found = Probed(endpoint, one or reply(FIRST, queue=5, compute=9), 12_340_000, two, reply(SECOND))
    return {line[2:16].strip(): line[17:] for line in lines(found)}


def test_everything_that_is_known_is_said() -> None:
    assert told(reply(FIRST, SECOND)) == {
        "server": "triton, over grpc at gpu:8001",
        "model": "siglip, version 2; embeddings of the space 'towers'",
        "codec": "v2-grpc",
        "input": "pixel_values FP16 [384, 384, 3]: a picture's pixels, NHWC, prepared as clip",
        "output": "embeds: 2 numbers, of length 1",
        "first answer": "1 row in 12.3 ms",
        "two items": "2 rows, in the order sent; at most 8 a request",
        "its own times": "with each answer: queue, compute",
        "guessed": "It is.",
    }
    free = replace(SIGLIP, contract=replace(SIGLIP.contract, unit=False, max_batch=0, output=""))
    long = told(reply([4.0, 3.0], SECOND), free, reply([4.0, 3.0], compute=1))
    assert long["output"] == "2 numbers, not of length 1 (5)"
    assert long["two items"] == "2 rows, in the order sent; no limit is known"


@pytest.mark.parametrize(
    ("two", "said"),
    [
        ("refused (timeout); set max_batch = 1", "refused (timeout); set max_batch = 1"),
        (reply(FIRST), "1 row: set max_batch = 1"),
        (reply([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]), "rows of 3 numbers; for a single item 2"),
        (reply(FIRST, FIRST), f"{UNLIKE} (cosine 1.0000 and cosine 0.6000): see answer.order"),
        (reply([1.0, 0.04], SECOND), "2 rows, in the order sent"),
        (reply([1.0, 0.05], SECOND), f"{UNLIKE} (cosine 0.9988 and cosine 1.0000)"),
    ],
)  # fmt: skip
def test_two_items_in_one_request(two: Reply | str, said: str) -> None:
    assert told(two)["two items"].startswith(said)


@pytest.mark.parametrize(
    ("rows", "most", "said"),
    [
        (each, 0, "2 rows, in the order sent; no limit is known"),
        (lambda images: each(images)[::-1], 0, UNLIKE),
        (
            lambda images: each(images) if len(images) == 1 else [],
            0,
            "answers one item a request, but not two (HTTP 422",
        ),
        (each, 1, "it takes one item per request"),
    ],
)
def test_a_target_is_asked_for_one_item_for_two_and_for_the_second_alone(
    rows: Callable[[list[str]], Any], most: int, said: str
) -> None:
    with answering(rows) as endpoint:
        contract = replace(endpoint.contract, max_batch=most)
        found = asked(replace(endpoint, contract=contract), image_set(3))
        told = {line[2:16].strip(): line[17:] for line in lines(found)}
    assert told["two items"].startswith(said)
    assert told["output"].startswith("3 numbers, not of length 1 (")
    assert told["its own times"] == "nowhere: a study cannot separate its queue wait from its compute time"
    assert found.one.embeddings.shape == (1, 3)
    assert 0 < found.took_ns < 5_000_000_000


@pytest.mark.parametrize(
    ("one", "second", "rows", "said"),
    [
        (0.9, 0.2, (0.9, 0.2), "2 rows, in the order sent"),
        (0.9, 0.2, (0.2, 0.9), f"{UNLIKE} (0.2, not 0.9 and 0.9, not 0.2): see answer.order"),
        (-3, 3, (3, -3), f"{UNLIKE} (3, not -3"),
        (0.9, 0.905, (0.905, 0.9), "2 rows; the two items' outputs are alike, so their order cannot be told"),
        (0, 0, (0, 0), "2 rows; the two items' outputs are alike, so their order cannot be told"),
    ],
)
def test_the_order_of_scores_is_told_by_their_values(
    one: float, second: float, rows: tuple[float, float], said: str
) -> None:
    scores = replace(SIGLIP, contract=replace(FOUND, dimension=1, unit=False))
    found = Probed(scores, reply([one]), 1, reply(*([row] for row in rows)), reply([second]))
    told = {line[2:16].strip(): line[17:] for line in lines(found)}
    assert told["two items"].startswith(said)
    assert told["output"] == "embeds: 1 number"


def test_the_file_says_what_was_found(tmp_path: Path) -> None:
    target = "triton+grpc://gpu:8001/siglip"
    found = Probed(SIGLIP, reply(FIRST), 1, reply(FIRST, SECOND), None)
    table = {"space": "towers", "output": "embeds", "prepare": "clip", "input": {"pixel_values": "picture"}}
    write(tmp_path / "a.toml", target, found)
    text = (tmp_path / "a.toml").read_text()
    shape = {"pixel_values": "B,384,384,3"}
    assert tomllib.loads(text) == {"url": target, "max_batch": 8, "shape": shape, **table}
    assert "\n# guessed: It is.\n" in text
    one = toml_of(target, replace(found, two=reply(FIRST)))
    assert tomllib.loads(one)["max_batch"] == 1
    free = replace(SIGLIP, contract=replace(SIGLIP.contract, max_batch=0, batched=False))
    made = tomllib.loads(toml_of(target, replace(found, endpoint=free)))
    assert (made.get("max_batch"), made["shape"]) == (None, {"pixel_values": "384,384,3"})
    for path, of, said in (
        ("a.toml", target, "already exists; name another file"),
        ("no/b.toml", target, "cannot be written (No such file or directory); name another file"),
        ("b.toml", "own.toml", "own.toml is already a file; edit it, or leave out --out"),
    ):
        with pytest.raises(UsageError) as refused:
            write(tmp_path / path, of, found)
        assert str(refused.value).endswith(said)


def test_the_command_has_what_was_given_for_the_endpoint() -> None:
    given = ("--endpoint", "a=v2+http://gpu:1/m", "--space", "a=x y", "--shape", "p=3,8,8", "--shape", "q=1")
    said = command("a=v2+http://gpu:1/m", options(*given))
    assert said.startswith("inferswarm run --endpoint a=v2+http://gpu:1/m ")
    assert said.endswith(" --shape p=3,8,8 --shape q=1 --space 'a=x y'")
    said = command("a=v2+http://gpu:1/m", options(*given[:2], "--texts", "/a b", "--input", "t=text"))
    assert said.endswith(" --input t=text --texts '/a b'")


def test_names_of_any_letters_are_written_as_toml_has_them() -> None:
    one = Input('a "b" é.c\x7f\x9b31m\u202e', "BYTES", (1,), "text")
    odd = replace(SIGLIP, space='org/m "x"', contract=replace(FOUND, inputs=(one,), output="out\\put"))
    target = "v2+http://gpu:1/org/модель b"
    text = toml_of(target, Probed(odd, reply(FIRST), 1, reply(FIRST, SECOND), None))
    assert all(map(str.isprintable, text.splitlines())), "on a terminal"
    made = tomllib.loads(text)
    assert (made["url"], made["space"], made["output"]) == (target, 'org/m "x"', "out\\put")
    assert made["input"] == {one.name: "text"}
    assert made["shape"] == {one.name: "B,1"}
