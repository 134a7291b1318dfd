"""examples/grafana: the dashboard is what its program makes, of the metrics that there are, and no others."""

import json
import re
from pathlib import Path

import pytest

from swarm.exporters.metrics import METRICS

make = pytest.importorskip("examples.grafana.make")
FOLDER = Path(__file__).parents[2] / "examples" / "grafana"
NAME = re.compile(r"inferswarm_[a-z0-9_]+")


def test_the_file_is_what_the_program_makes() -> None:
    assert (FOLDER / "inferswarm.json").read_text() == make.made(), "python -m examples.grafana.make"


def test_every_metric_is_shown_and_no_other_is_asked_for() -> None:
    known = {metric.name for metric in METRICS}
    asked = {name.removesuffix("_bucket") for query in make.queries() for name in NAME.findall(query)}
    assert asked == known


def test_each_panel_is_labelled_and_its_queries_have_names_of_their_own() -> None:
    board = json.loads((FOLDER / "inferswarm.json").read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len({panel["title"] for panel in panels}) == len(panels) == 26
    for panel in panels:
        assert panel["description"].endswith(".")
        names = [target["refId"] for target in panel["targets"]]
        assert names == ["A", "B", "C"][: len(names)]
        assert panel["type"] == "state-timeline" or panel["fieldConfig"]["defaults"]["unit"]
    shown = [target["expr"] for panel in panels for target in panel["targets"]]
    assert shown == make.queries()
    assert [one["name"] for one in board["templating"]["list"]] == ["datasource", "endpoint", "cell"]


def test_names_keep_prometheus_practice() -> None:
    """prometheus.io/docs/practices/naming: base units, counters end in _total, and nothing else does."""
    for metric in METRICS:
        assert re.fullmatch(r"inferswarm(_[a-z0-9]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert not re.search(r"percent|_(ms|ns|mhz|mib|kb|hours|minutes)(_|$)", metric.name)
        assert metric.about
        assert not metric.about.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
