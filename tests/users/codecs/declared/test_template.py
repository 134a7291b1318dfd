"""Bodies of declared requests: what stands in them for one item and for several, and which are refused."""

import base64
import email
import email.policy
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from users.codecs.declared.template import BOUNDARY, DATA_URL, Template


@dataclass
class Thing:
    """An item that notes what it is asked for."""

    number: int
    asked: list[str] = field(default_factory=list)

    @property
    def jpeg(self) -> bytes:
        self.asked.append("jpeg")
        return b"\xff\xd8" + bytes([self.number])

    @property
    def text(self) -> str:
        self.asked.append("text")
        return f'a "{self.number}"'

    @property
    def pixels(self) -> NDArray[np.float32]:
        self.asked.append("pixels")
        return np.full((3, 1, 2), self.number + 0.5, np.float32)


ONE, TWO = Thing(1), Thing(2)
BASE64 = [base64.b64encode(thing.jpeg).decode() for thing in (ONE, TWO)]
URLS = [DATA_URL + text for text in BASE64]


def sent(value: Any, *things: Thing, **more: Any) -> Any:
    body, content_type = Template("json", value, **more).render(things or (ONE,))
    assert content_type == "application/json"
    return orjson.loads(body)


def test_objects_in_a_list_are_repeated() -> None:
    value = {"data": [{"blob": "$jpeg_base64", "of": {"text": "$text"}}], "tags": ["x"], "flag": True}
    items = [{"blob": BASE64[at], "of": {"text": f'a "{at + 1}"'}} for at in range(2)]
    assert sent(value, ONE, TWO) == {"data": items, "tags": ["x"], "flag": True}
    assert sent(value) == {"data": items[:1], "tags": ["x"], "flag": True}


def test_a_list_may_be_all_of_it() -> None:
    assert sent(["$text"], ONE, TWO) == ['a "1"', 'a "2"']
    assert sent([["$text"]], ONE, TWO, repeat=".") == [['a "1"'], ['a "2"']]


def test_only_the_element_of_an_item_is_repeated() -> None:
    value = {"content": [{"text": "first"}, {"image": "$jpeg_base64"}, {"text": "last"}]}
    images = [{"image": text} for text in BASE64]
    found = sent(value, ONE, TWO, repeat="content")
    assert found == {"content": [{"text": "first"}, *images, {"text": "last"}]}


def test_one_of_two_arrays_is_named() -> None:
    value = {"messages": [{"role": "user", "content": [{"url": "$data_url"}]}]}
    inner = sent(value, ONE, TWO, repeat="messages.0.content")
    assert inner == {"messages": [{"role": "user", "content": [{"url": url} for url in URLS]}]}
    outer = sent(value, ONE, TWO, repeat="messages")
    assert outer["messages"] == [{"role": "user", "content": [{"url": url}]} for url in URLS]
    assert sent(value, max_batch=1) == {"messages": [{"role": "user", "content": [{"url": URLS[0]}]}]}


def test_a_placeholder_stands_inside_a_text() -> None:
    value = {"input": ["$text: <img src='$data_url'/> for $$5, $5 and 10$"]}
    assert sent(value) == {"input": [f"a \"1\": <img src='{URLS[0]}'/> for $5, $5 and 10$"]}
    assert sent({"a": "$$text", "b": "$text"}) == {"a": "$text", "b": 'a "1"'}


def test_pixels_are_nested_lists() -> None:
    value = {"instances": [{"pixels": "$pixels"}]}
    pixels = [[[1.5, 1.5]]] * 3, [[[2.5, 2.5]]] * 3
    assert sent(value, ONE, TWO) == {"instances": [{"pixels": one} for one in pixels]}


def test_bytes_and_pixels_go_by_msgpack() -> None:
    body, content_type = Template("msgpack", [{"a": "$jpeg", "b": "$pixels", "n": 2}]).render([ONE, TWO])
    assert content_type == "application/msgpack"
    pixels = [[[1.5, 1.5]]] * 3, [[[2.5, 2.5]]] * 3
    things = zip((ONE, TWO), pixels, strict=True)
    assert msgpack.unpackb(body) == [{"a": one.jpeg, "b": numbers, "n": 2} for one, numbers in things]


def test_a_body_may_be_the_file_or_a_text() -> None:
    assert Template("raw", "$jpeg").render([TWO]) == (TWO.jpeg, "image/jpeg")
    made = Template("raw", '{"of": "$jpeg_base64"}').render([ONE])
    assert made == (f'{{"of": "{BASE64[0]}"}}'.encode(), "text/plain; charset=utf-8")


def parts_of(value: Any, *things: Thing, **more: Any) -> list[tuple[str, str, str, bytes]]:
    """Name, file name, type and content of each part, as Python's own parser reads a form."""
    body, content_type = Template("multipart", value, **more).render(things)
    assert content_type == f"multipart/form-data; boundary={BOUNDARY}"
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    form = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    return [
        (
            str(part.get_param("name", header="content-disposition")), part.get_filename() or "",
            str(part.get("Content-Type", "")), part.get_payload(decode=True),
        )
        for part in form.iter_parts()
    ]  # fmt: skip


def test_a_form_has_files_and_fields() -> None:
    value = {"entries": '{"a": 1}', "flag": True, "n": 3, "image": "$jpeg"}
    fields = [("entries", "", "", b'{"a": 1}'), ("flag", "", "", b"true"), ("n", "", "", b"3")]
    image = ("image", "image.jpg", "image/jpeg", ONE.jpeg)
    assert parts_of(value, ONE, max_batch=1) == [*fields, image]


def test_a_batch_repeats_the_field_of_a_form() -> None:
    files = [("images", "image.jpg", "image/jpeg", thing.jpeg) for thing in (ONE, TWO)]
    assert parts_of({"images": "$jpeg", "model": "m"}, ONE, TWO) == [*files, ("model", "", "", b"m")]
    two_fields = {"images": ["$jpeg"], "texts": "$text"}
    assert Template("multipart", two_fields, max_batch=1).repeats is False


def test_nothing_is_made_that_is_not_asked_for() -> None:
    things = Thing(1), Thing(2)
    Template("json", {"texts": ["$text"]}).render(things)
    assert [thing.asked for thing in things] == [["text"], ["text"]]


def test_it_says_what_it_uses_and_whether_it_repeats() -> None:
    made = Template("json", {"a": ["$data_url $text"]})
    assert made.uses == {"data_url", "text"}
    assert made.repeats
    assert not Template("raw", "$jpeg").repeats
    assert Template("json", {"url": "http://gpu/cat.jpg"}, fetched=True).uses == frozenset()


def refusal(kind: str, value: Any, **more: Any) -> str:
    with pytest.raises(ValueError) as caught:
        Template(kind, value, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "value", "more", "said"),
    [
        ("json", {"a": "b"}, {}, ".json: has no placeholder for a picture or a text; give $jpeg_base64"),
        ("json", {"a": [{"b": "$imge"}]}, {}, ".json.a[0].b: has $imge, which is not a placeholder; give "),
        ("json", {"a": "${TOKEN}"}, {}, ".json.a: has ${, which is not a placeholder; give "),
        ("json", {"a": "$jpeg"}, {}, ".json.a: has $jpeg in json, which cannot hold bytes; give $jpeg"),
        ("raw", "x$jpeg", {}, ".raw: has $jpeg inside a longer text, which cannot hold bytes; give "),
        ("raw", "$pixels", {}, ".raw: has $pixels in raw, which cannot hold an array; send it as json"),
        ("multipart", {"a": "$pixels"}, {}, ".multipart.a[0]: has $pixels in multipart, which cannot hold"),
        ("json", {"a": "HTTPS://x/y.jpg", "b": "$text"}, {}, ".json.a: has a URL, which the server would "),
        ("json", {"a": "$text"}, {"max_batch": 2}, ".json: nothing in it repeats for a batch of 2; put "),
        ("json", {"a": ["$text", "$text"]}, {"max_batch": 4}, ".json: nothing in it repeats for a batch "),
        ("json", {"a": ["$text"], "b": ["$data_url"]}, {}, ".json: 2 arrays may repeat for a batch; give "),
        ("json", {"a": ["$text"], "b": "$text"}, {}, ".json.b: stands outside body.json.a, which"),
        ("json", {"a": ["$text"]}, {"repeat": "b"}, ".repeat: 'b' is not an array with a placeholder; "),
        ("json", {"a": ["$text", "$text"]}, {"repeat": "a"}, ".repeat: a has several elements per item; "),
        ("json", {"a": ["$text", float("nan")]}, {}, ".json.a[1]: nan cannot be written in a body; give "),
        ("multipart", {"a": {"b": "$text"}}, {}, ".multipart.a: is not a text or number; give "),
        ("multipart", ["$jpeg"], {}, ".multipart: is not a table; give its fields, such as"),
        ("raw", ["$jpeg"], {}, ".raw: is not a text; give one such as"),
    ],
)
def test_what_cannot_be_a_body(kind: str, value: Any, more: dict[str, Any], said: str) -> None:
    sentence = refusal(kind, value, **more)
    assert sentence.startswith(f"body{said}")
    assert "; " in sentence
    assert len(sentence) < 240


def test_a_batch_needs_what_repeats() -> None:
    with pytest.raises(ValueError, match=r"^body.raw: nothing in it repeats for a batch of 2; put "):
        Template("raw", "$jpeg").render([ONE, TWO])
    said = refusal("json", {"a": ["$text"], "b": ["$data_url"]}, max_batch=8)
    assert said.endswith('body.repeat = "a" or "b", or max_batch = 1')


def test_a_url_that_the_server_fetches_must_be_allowed() -> None:
    value = {"input": ["http://gpu/cat.jpg"]}
    assert "fetched_by_server = true" in refusal("json", value)
    assert sent(value, fetched=True) == value
