"""`python -m server service`: the PyTorch service on uvicorn, set up by INFERSWARM_* variables."""

from __future__ import annotations

import argparse
import os
import sys

from server.settings import Settings


def main(argv: list[str]) -> int:
    """Serve until a signal; 2 where the settings or the model will not do."""
    argparse.ArgumentParser(prog="python -m server service", description=__doc__).parse_args(argv)
    settings = Settings.from_env(os.environ)
    import uvicorn

    from server.app import create_app
    from server.clip import ClipEmbedder

    failures: list[Exception] = []

    def stop(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    app = create_app(ClipEmbedder(settings), settings, on_failure=stop)
    # An access log line for each request would be measured with the request.
    config = uvicorn.Config(
        app, settings.host, settings.port, access_log=False, log_level="warning", timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    server.run()
    for error in failures:
        print(error, file=sys.stderr)
    return 0 if server.started and not failures else 2
