"""Tokens' names stand for them, however a text spells them."""

import html
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from server import settings
from server.embedded import guard
from server.triton import tritonserver
from swarm.hosts import host
from swarm.options import values
from users import redact, tls
from users.errors import status_error
from users.redact import CONTROL, VARIABLE, redacted, spellings

TOKEN = 'abc/+"\\&<def'


@pytest.fixture(autouse=True)
def own_tokens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("INFERSWARM_TOKEN", TOKEN)
    monkeypatch.setenv("INFERSWARM_ONNX_TOKEN", f"{TOKEN}-longer")
    monkeypatch.setenv("INFERSWARM_TRT_TOKEN", "abc")
    monkeypatch.setenv("ANOTHER_TOKEN", "not ours")
    spellings.cache_clear()
    yield
    spellings.cache_clear()


@pytest.mark.parametrize("spelt", [TOKEN, json.dumps(TOKEN)[1:-1], quote(TOKEN, safe=""), html.escape(TOKEN)])
def test_however_it_is_spelt(spelt: str) -> None:
    assert redacted(f"<{spelt}> and {spelt}") == "<[INFERSWARM_TOKEN]> and [INFERSWARM_TOKEN]"


def test_one_that_holds_another_is_named_whole() -> None:
    assert redacted(f"{TOKEN}-longer") == "[INFERSWARM_ONNX_TOKEN]"


def test_what_is_no_token_of_ours_or_too_short_to_be_one_stays() -> None:
    assert redacted("abc, not ours") == "abc, not ours"


@pytest.mark.parametrize("before", [0, 119, 1_990, 16_383])
def test_not_even_its_beginning_is_shown(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tls.TOKEN, "k" * 4096)
    error = status_error(401, b"-" * before + b"k" * 4096)
    assert "k" not in error.detail
    assert error.detail.endswith(f"[{tls.TOKEN}]")


def test_whoever_names_tokens_elsewhere_means_the_same() -> None:
    assert host.VARIABLE.pattern == VARIABLE.pattern
    assert host.MASTERS_OWN == values.INFLUX_TOKEN
    assert VARIABLE.fullmatch(tls.TOKEN)
    assert CONTROL == tritonserver.VARIABLE == guard.SECRET
    assert settings.MAX_TOKEN == tls.LONGEST_TOKEN


def test_of_the_secret_for_model_control_the_value_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTROL, f"control={TOKEN}=x")
    spellings.cache_clear()
    assert redacted(f"control: {TOKEN}=x, control") == f"control: [{CONTROL}], control"


@pytest.fixture
def no_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_in_urls", {})


@pytest.mark.usefixtures("no_urls")
@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("api-version=2024-02-01&dimensions=256", "2024-02-01, 256", "2024-02-01, 256"),
        ("v=1&sig=aB3%2Fd0123", "bad aB3/d0123 in ?v=1&sig=aB3%2Fd0123", "bad [sig] in ?v=1&sig=[hidden]"),
        ("code=abcDEF123456", "abcDEF123456 is unknown", "[code] is unknown"),
        ("api-key=short1", "GET /embed?api-key=short1 is short1", "GET /embed?[api-key] is short1"),
        (
            "password=correcthorse",
            "the correcthorse; ?password=correcthorse",
            "the correcthorse; ?[password]",
        ),
        ("max_tokens=5120000000&tokenize=never-or-so", "5120000000 never-or-so", "5120000000 never-or-so"),
        ("X-Amz-Signature=0123abcdef", "x&amp;X-Amz-Signature=9876", "x&amp;X-Amz-Signature=[hidden]"),
    ],
)
def test_secrets_in_a_url_s_query(query: str, text: str, shown: str) -> None:
    redact.keep_query(f"/embed?{query}")
    assert redacted(text) == shown
