"""Tokens never come back out of foreign texts, and are what a header can carry."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator

import pytest

from users.errors import ErrorKind, kind_of, status_error
from users.redact import redacted, spellings
from users.tls import (
    OPEN,
    TOKEN,
    Security,
    SecurityError,
    authorization,
    check_here,
    new_context,
    variable_of,
)

SECRET = 'sec"ret\\token'


@pytest.fixture(autouse=True)
def tokens_read_anew() -> Iterator[None]:
    spellings.cache_clear()
    yield
    spellings.cache_clear()


def test_a_repeated_token_is_hidden_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    monkeypatch.setenv("INFERSWARM_ONNX_TOKEN", "another-one")
    monkeypatch.setenv("INFERSWARM_TRT_TOKEN", "abc")
    said = redacted(f"not {SECRET} nor another-one, abc")
    assert said == f"not [{TOKEN}] nor [INFERSWARM_ONNX_TOKEN], abc"
    assert redacted(json.dumps({"detail": SECRET})) == f'{{"detail": "[{TOKEN}]"}}'


@pytest.mark.parametrize("before", [0, 100, 119])
def test_not_even_its_beginning_is_shown(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "k" * 4096)
    error = status_error(401, b"-" * before + b"k" * 4096)
    assert error.detail == "HTTP 401 " + f"{'-' * before}[{TOKEN}]"[:120]


def test_the_own_variable_goes_before_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.delenv("INFERSWARM_TRT_TOKEN", raising=False)
    assert (variable_of("trt"), variable_of("")) == ("", "")
    monkeypatch.setenv(TOKEN, "all")
    assert (variable_of("trt"), variable_of("")) == (TOKEN, TOKEN)
    monkeypatch.setenv("INFERSWARM_TRT_TOKEN", "own")
    assert (variable_of("trt"), variable_of("onnx")) == ("INFERSWARM_TRT_TOKEN", TOKEN)
    assert authorization(Security(token="INFERSWARM_TRT_TOKEN")) == {"authorization": "Bearer own"}
    assert authorization(Security()) == {}


def test_a_token_that_is_gone_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "")
    for use in (authorization, check_here):
        with pytest.raises(SecurityError, match="INFERSWARM_TOKEN is not set"):
            use(Security(token=TOKEN))


def test_a_connection_that_is_cut_off_has_not_ended() -> None:
    """Of itself, Python before 3.11.4 would say nothing of it, and then call it a fault of TLS."""
    assert not new_context(OPEN).options & getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    older = ssl.SSLError(1, "[SSL: UNEXPECTED_EOF_WHILE_READING] unexpected eof while reading")
    older.reason = "UNEXPECTED_EOF_WHILE_READING"
    assert kind_of(older) is kind_of(ssl.SSLEOFError(8, "EOF occurred")) is ErrorKind.RESET
    older.reason = "WRONG_VERSION_NUMBER"
    assert kind_of(older) is ErrorKind.TLS
