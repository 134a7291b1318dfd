"""Locust patches sockets and threads when imported, so it comes before anything a test imports."""

import locust  # noqa: F401
