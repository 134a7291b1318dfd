"""What can go wrong before a server runs, and what a client can do wrong once it does."""


class SetUpError(Exception):
    """Something this machine or the command line lacks; the message is one sentence naming the mend.

    `log_tail` is the end of the log of the process that found out, where there is one.
    """

    def __init__(self, text: str, log_tail: str = "") -> None:
        super().__init__(text)
        self.log_tail = log_tail


class Refusal(Exception):
    """A request the service refuses: an HTTP status in 4xx and one sentence for the client."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
