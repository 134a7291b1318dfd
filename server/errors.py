"""Errors before a server runs, and client errors once it does."""

from __future__ import annotations

from collections.abc import Mapping


class SetUpError(Exception):
    """Something this machine or command line lacks, said with the fix; `log_tail`: of who found out."""

    def __init__(self, text: str, log_tail: str = "") -> None:
        super().__init__(text)
        self.log_tail = log_tail


class Refusal(Exception):
    """A request the service refuses: one sentence for the client, and the HTTP status.

    4xx is the client's to fix, 502 the upstream's, 503 a service that is not ready.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


class NotYet(Exception):
    """The model cannot be loaded now, and perhaps later; one sentence on what is waited for."""


def sentence(error: Exception) -> str:
    """What an error says, on one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def not_loaded(error: Exception) -> str:
    """What clients get from a service whose model could not be loaded."""
    return f"the model could not be loaded: {sentence(error)}"
