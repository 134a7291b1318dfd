"""The exporters of a study: those whose options are given."""

from typing import Any

from swarm.exporters.json_lines import open_json_lines
from swarm.options.model import Options


def open_exporters(options: Options) -> list[Any]:
    """Listeners to a study's events, by the names of these: `on_window` hears of each `events.window`.

    They live as long as the process, study after study. Raises UsageError, naming the option, where one
    cannot reach what it exports to, or listen.
    """
    opened: list[Any] = []
    if options.json_lines:
        opened.append(open_json_lines(options.json_lines))
    if options.prometheus_port:
        from swarm.exporters.live import Live
        from swarm.exporters.prometheus import start_exporter

        opened.append(live := Live())
        start_exporter(options.prometheus_host, options.prometheus_port, live)
    if options.influx_url:
        # Its package takes a quarter of a second to import.
        from swarm.exporters.influx import open_influx

        opened.append(open_influx(options.influx_url, options.tls_ca))
    if options.otlp_url:
        from swarm.exporters.otlp import open_otlp

        opened += open_otlp(options.otlp_url, traced=options.traceparent > 0)
    return opened
