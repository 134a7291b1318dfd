"""The exporters of a study: those whose options are given."""

from typing import Any

from swarm.options.model import Options


def open_exporters(options: Options) -> list[Any]:
    """Listeners to a study's events, by the names of these: `on_window` hears of each `events.window`.

    They live as long as the process, study after study. Raises UsageError, naming the option, where one
    cannot reach what it exports to, or listen.
    """
    opened: list[Any] = []
    if options.prometheus_port:
        from swarm.exporters.live import Live
        from swarm.exporters.prometheus import start_exporter

        opened.append(live := Live())
        start_exporter(options.prometheus_host, options.prometheus_port, live)
    return opened
