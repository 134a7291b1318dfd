"""Answers that refuse a question before any load: what they tell, and whether to ask again.

A server that limits requests, or is not ready yet, is asked again for as long as somebody is `patient`; what
it answers in the end is shown in its own words, with what they mean where that is certain.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import TypeVar

import gevent
import grpc

from users.endpoint import Endpoint
from users.errors import REDIRECTS, REFUSALS, ErrorKind, RequestError, request_error
from users.redact import SECRET, secrets_in
from users.tls import TOKEN, own_variable

MOST_WAIT_S = 30.0
"""Altogether, for all questions to all servers of one preparation."""
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.05, 2.0
"""Where an answer does not say when to ask again: doubled each time."""
NO_TOKEN = ("401", "UNAUTHENTICATED")
FORBIDDEN = ("403", "PERMISSION_DENIED")
NO_ANSWER = (ErrorKind.TIMEOUT, ErrorKind.RESET, ErrorKind.REFUSED)
ABSENT = ("404", "405", "501", "NOT_FOUND", "UNIMPLEMENTED")
MEANINGS = {
    **dict.fromkeys(("429", "RESOURCE_EXHAUSTED"), "it limits requests; raise its limit for this client"),
    **dict.fromkeys(("500", "INTERNAL", "UNKNOWN"), "look at its log"),
    **dict.fromkeys(
        ("502", "504"),
        "a proxy answers, which does not reach its server; look at where it passes requests on to",
    ),
    **dict.fromkeys(
        ("503", "UNAVAILABLE"),
        "it, or a proxy before it, takes no requests now; look at its log, or wait for it",
    ),
}
"""By HTTP's status or gRPC's code: what an answer means whoever gives it, and the fix."""
HTTP_WITHIN = re.compile(r"(?:^HTTP|with status:) ([45]\d\d)\b")
"""In the words of a gRPC client: the answer was one of plain HTTP."""
SIZE_CODES = ("400", "422", "INVALID_ARGUMENT", "OUT_OF_RANGE")
"""They may also be of something else, as the words tell."""
SIZE_WORDS = re.compile(
    r"batch|too (?:many|large|long|big)|at most|max|exceed|larger|limit|shape|dimension|size"
)
Answer = TypeVar("Answer")


class Patience:
    """What is left of the time to wait for refusals; `say` tells a person, once for each server."""

    def __init__(self, say: Callable[[str], None], sleep: Callable[[float], None]) -> None:
        self.left_s = MOST_WAIT_S
        self._say, self._sleep = say, sleep
        self._told: set[str] = set()

    def wait(self, server: str, error: RequestError, backoff_s: float) -> bool:
        """Wait as an answer asks for it, or for the back-off; False where so much time is not left."""
        asked_s = seconds_asked(error, time.time())
        wait_s = max(asked_s, backoff_s)
        if wait_s > self.left_s:
            return False
        if server not in self._told:
            self._told.add(server)
            how = f"asks to wait {asked_s:.0f} s" if asked_s else "is asked again"
            self._say(f"{server} answers with {error.whole}: it {how}, for {MOST_WAIT_S:.0f} s at most")
        self.left_s -= wait_s
        self._sleep(wait_s)
        return True


_patience: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def patient(say: Callable[[str], None], sleep: Callable[[float], None] = gevent.sleep) -> Iterator[None]:
    """Have all questions of this greenlet asked again in the block where they are refused for the moment."""
    if _patience.get() is not None:  # the time is for all of them together
        yield
        return
    before = _patience.set(Patience(say, sleep))
    try:
        yield
    finally:
        _patience.reset(before)


def seconds_asked(error: RequestError, now_s: float) -> float:
    """For how long an answer's Retry-After, seconds or a date of HTTP, asks to wait; 0 where it does not.

    `now_s`: since the epoch.
    """
    try:
        until_s = parsedate_to_datetime(error.retry_after or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return error.retry_after_s
    return max(0.0, until_s - now_s)


def wait_for(server: str, error: RequestError, backoff_s: float) -> bool:
    """Whether a server has been waited for, and is to be asked again: not where nobody is patient."""
    patience = _patience.get()
    return patience is not None and patience.wait(server, error, backoff_s)


def passes(error: RequestError) -> bool:
    """Whether a refusal may be over at another time."""
    return error.code in REFUSALS and error.refused_for != "size"


def ask_again(
    server: str,
    ask: Callable[[], Answer],
    refusal: Callable[[Answer], RequestError | None] = lambda answer: None,
) -> Answer:
    """What `ask` gives or raises in the end; `refusal` reads one out of an answer that is not raised.

    Raises as `ask` does.
    """
    backoff_s = FIRST_BACKOFF_S
    while True:
        try:
            answer = ask()
            error = refusal(answer)
            if error is None or not (passes(error) and wait_for(server, error, backoff_s)):
                return answer
        except (RequestError, grpc.RpcError) as raised:
            error = request_error(raised)
            if not (passes(error) and wait_for(server, error, backoff_s)):
                raise
        backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)


def explain_refusal(endpoint: Endpoint, question: str, raised: BaseException, foreign: str) -> str:
    """The end of a sentence on an answer to `question` that was not as expected, with the server's own words.

    `foreign`: the fix where it may be another server, or takes something else.

    >>> gone = RequestError(ErrorKind.SERVER_ERROR, "HTTP 502 <h1>Bad", "502")
    >>> explain_refusal(Endpoint("e", "v2", "http", "fp32", "gpu:1"), "GET /v2", gone, "").split(": ")[0]
    'answers GET /v2 with HTTP 502 <h1>Bad'
    """
    error = request_error(raised)
    fix = f"; {foreign}" if foreign else ""
    if not error.code:
        if error.kind in NO_ANSWER:
            fix = f", or {foreign}" if foreign else ""
            return f"gives no answer to {question} ({error}); look at its log{fix}"
        return f"does not answer as expected to {question} ({error}){fix}"
    if error.code in map(str, REDIRECTS):
        return f"redirects requests, which a study does not follow ({error.whole})"
    told = f"answers {question} with {error.whole}"
    within = HTTP_WITHIN.search(error.detail)
    code = within[1] if within else error.code
    if code in NO_TOKEN:
        return f"{explain_token(endpoint)} (it {told})"
    if code in FORBIDDEN:
        return f"{told}: it refuses this client, or {explain_token(endpoint)}"
    return f"{told}: {MEANINGS[code]}" if code in MEANINGS else f"{told}{fix}"


def limits_size(error: RequestError) -> bool:
    """Whether an answer refuses a request for how much is in it: by its status, or by its words.

    >>> limits_size(RequestError(ErrorKind.REJECTED, "HTTP 400 batch size 2 > 1", "400"))
    True
    """
    if error.code == "413" or error.refused_for == "size":
        return True
    return error.code in SIZE_CODES and SIZE_WORDS.search(error.detail.lower()) is not None


def explain_token(endpoint: Endpoint) -> str:
    """What is wrong where the token is not taken, or none is sent."""
    secrets = [name for name, _ in endpoint.headers if SECRET.search(name)] + [*secrets_in(endpoint.path)]
    if secrets:
        return f"does not accept what the endpoint's file gives as {', '.join(secrets)}; give the right value"
    if endpoint.security.token:
        return f"does not accept the token in {endpoint.security.token}; export the right one"
    own = own_variable(endpoint.backend if endpoint.shares == endpoint.backend else endpoint.name)
    return f"requires a token; export it as {TOKEN}, or for this server only as {own}"
