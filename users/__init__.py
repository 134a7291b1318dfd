"""Users: how one request is built, sent, timed and checked.

A locustfile of your own subclasses InferenceUser and names an Endpoint; a study imports EmbeddingUser.
Backend, Facts and register are for a kind of server that is not known yet.
"""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import os

# Read when grpc is imported. It would start again in each process that is forked, find its sockets closed,
# and abort: one subprocess in ten ended so before it had begun.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from users.backends.base import Backend as Backend
from users.backends.base import Facts as Facts
from users.backends.registry import register as register
from users.endpoint import Endpoint as Endpoint
from users.load.user import InferenceUser as InferenceUser


class EmbeddingUser(InferenceUser):
    """Who asks the endpoints of a study, whatever their backends."""
