"""Which token is sent, that it is there, and what TLS makes of a connection that was cut off."""

import ssl

import pytest

from users.errors import ErrorKind, kind_of, tls_advice, tls_fault
from users.tls import TOKEN, Security, SecurityError, authorization, check_here, new_context, variable_of


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
    assert not new_context(Security()).options & getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
    older = ssl.SSLError(1, "[SSL: UNEXPECTED_EOF_WHILE_READING] unexpected eof while reading")
    older.reason = "UNEXPECTED_EOF_WHILE_READING"
    assert kind_of(older) is kind_of(ssl.SSLEOFError(8, "EOF occurred")) is ErrorKind.RESET
    older.reason = "WRONG_VERSION_NUMBER"
    assert kind_of(older) is ErrorKind.TLS


CLIENT_CERT = "--tls-client-cert"


@pytest.mark.parametrize(
    ("reason", "words", "advice"),
    [
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "handshake failure", ""),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "bad certificate", ""),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "protocol version", ""),
        ("TLSV1_ALERT_UNKNOWN_CA", "unknown ca", ""),
        ("TLSV1_ALERT_NO_APPLICATION_PROTOCOL", "no application protocol", ""),
        ("TLSV1_ALERT_ACCESS_DENIED", "access denied", ""),
        ("TLSV1_UNRECOGNIZED_NAME", "unrecognized name", "host in the endpoint's file"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "demands a client certificate", CLIENT_CERT),
        ("WRONG_VERSION_NUMBER", "does not speak TLS", "give http://gpu:1"),
        ("UNSUPPORTED_PROTOCOL", "UNSUPPORTED_PROTOCOL", ""),
    ],
)
def test_only_what_an_alert_says_is_advised(reason: str, words: str, advice: str) -> None:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    told = tls_advice(error, False, "http://gpu:1")
    assert words in tls_fault(error)
    assert advice in told
    assert bool(told) == bool(advice)
    assert (CLIENT_CERT in told) == (advice == CLIENT_CERT)
