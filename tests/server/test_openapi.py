"""The service as its OpenAPI says it is: looked at, and asked by schemathesis what the schema allows or not."""

import json
from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from server.app import create_app
from server.settings import Settings
from tests.server.colour import ColourEmbedder

GIVEN = Settings(max_batch=4, max_body_bytes=100_000, max_pixels=100_000)
