"""A server of the KServe V2 protocol that is no Triton, or is not asked as one: it states no times."""

from collections.abc import Mapping

import grpc

from users.backends.base import Backend, Facts
from users.endpoint import Endpoint
from users.endpoint import Protocol as Wire
from users.errors import RequestError, TargetError
from users.refusals import explain_refusal
from users.transport.admin_connection import PATIENCE_S
from users.triton.api import open_api

OTHER_PORT = "the port that speaks KServe's V2 protocol"


def check(endpoint: Endpoint) -> None:
    """It says that its model is ready."""
    with open_api(endpoint, PATIENCE_S) as api:
        question = f"whether {endpoint.model!r} is ready"
        try:
            why = api.unready(endpoint.model, endpoint.version)
        except (RequestError, grpc.RpcError) as error:
            raise TargetError(explain_refusal(endpoint, question, error, f"give {OTHER_PORT}")) from error
    if why:
        raise TargetError(
            f"has no model {endpoint.model!r} that is ready ({why}); give the name of one that is, or"
            f" {OTHER_PORT}"
        )


CODECS: Mapping[Wire, str] = {"http": "v2-json", "grpc": "v2-grpc"}
BACKENDS = (Backend(name="v2", facts=Facts(), check=check, codecs=CODECS),)
