"""Any HTTP service, asked as a file describes it: its body, its answer, and where it states its own times."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from users.codecs.base import Answer, Codec, PreparedRequest
from users.codecs.declared.answer_path import AnswerReader
from users.codecs.declared.template import KINDS, Template
from users.codecs.server_timing import HEADER, declared_times, server_timing
from users.contract import Contract
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

OK = (200,)
CONTENT_TYPE = "content-type"


@dataclass(frozen=True, slots=True)
class StudyItem:
    """An item of a study as placeholders ask for it; nothing is made before."""

    images: ImageSet
    index: int
    contract: Contract

    @property
    def jpeg(self) -> bytes:
        """The picture's file."""
        return self.images.jpegs[self.index]

    @property
    def text(self) -> str:
        """The text in turn; there may be fewer than pictures."""
        return self.images.text(self.index)

    @property
    def pixels(self) -> NDArray[Any]:
        """The picture as the contract's input takes it."""
        one = next(one for one in self.contract.inputs if one.role == "picture")
        made: NDArray[Any] = self.images.tensor(one, self.contract, (self.index,))[0]
        return made


class DeclaredHttp(Codec):
    """`settings` has the tables `body`, `answer` and `times` of the endpoint's file.

    Raises ValueError, as `FIELD: what is wrong; give …`.
    """

    name, wire = "declared-http", "http"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        settings, contract = endpoint.settings, endpoint.contract
        answer, times = settings.get("answer") or {}, settings.get("times") or {}
        self._template = template_of(settings.get("body") or {}, contract.max_batch)
        self._read = AnswerReader(answer, contract.dimension)
        self.success = frozenset(answer.get("success", OK))
        self._typed = any(name.lower() == CONTENT_TYPE for name, _ in endpoint.headers)
        self._header = times.get("header", HEADER).lower()
        self._headers = declared_times(times.get("headers") or {})

    @property
    def path(self) -> str:
        """That of its URL."""
        return self.endpoint.path or "/"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """The body that its template makes; there is no place for an id."""
        contract = self.endpoint.contract
        body, content_type = self._template.render([StudyItem(images, at, contract) for at in indices])
        headers = {} if self._typed else {"Content-Type": content_type}
        return PreparedRequest(body, indices, headers, dimension=contract.dimension)

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """Where the answer's path leads."""
        return self._read(answer.body, answer.headers.get(CONTENT_TYPE, ""))

    def server_ns(self, answer: Answer) -> Mapping[str, int]:
        """By the headers that the file names, or `Server-Timing`, where that comes."""
        if self._headers:
            return self._headers(answer.headers)
        return server_timing(answer.headers, self._header)


def template_of(body: Mapping[str, Any], max_batch: int) -> Template:
    """The template of a file's table `body`. Raises ValueError."""
    kinds = [kind for kind in KINDS if kind in body]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise ValueError(f"body: has {found}; give exactly one of {', '.join(KINDS)}")
    (kind,) = kinds
    return Template(
        kind, body[kind], body.get("repeat"), max_batch, fetched=bool(body.get("fetched_by_server"))
    )
