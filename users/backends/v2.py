"""A server of the KServe V2 protocol that is no Triton, or is not asked as one: it states no times."""

from collections.abc import Mapping

import grpc

from users.backends.base import Backend, Facts
from users.endpoint import Endpoint
from users.endpoint import Protocol as Wire
from users.errors import RequestError, TargetError
from users.transport.admin_connection import PATIENCE_S, no_token, refuses_token
from users.triton.api import open_api


def check(endpoint: Endpoint) -> None:
    """It says that its model is ready."""
    with open_api(endpoint, PATIENCE_S) as api:
        try:
            ready = api.is_ready(endpoint.model, endpoint.version)
        except (RequestError, grpc.RpcError) as error:
            if refuses_token(error):
                raise TargetError(no_token(endpoint)) from error
            raise TargetError(
                f"answers, but not by KServe's V2 protocol over {endpoint.protocol}; give the port that does"
            ) from error
    if not ready:
        raise TargetError(f"has no model {endpoint.model!r} that is ready; give the name of one that is")


CODECS: Mapping[Wire, str] = {"http": "v2-json", "grpc": "v2-grpc"}
BACKENDS = (Backend(name="v2", facts=Facts(), check=check, codecs=CODECS),)
