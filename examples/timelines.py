import csv

from locustfiles.step7 import EmbeddingUser, Step7  # noqa: F401 (what Locust runs; we add a timeline to it)
from swarm import events

COLUMNS = ("t_s", "cell", "repeat", "requests_per_s", "latency_p50_ns", "gpu_util_pct", "gpu_power_w")
rows = {}


@events.window.add_listener
@events.sample.add_listener
def keep(window=None, sample=None, **_):
    second = {name: value for name, value in vars(window or sample).items() if name in COLUMNS}
    rows.setdefault((second["cell"], second["repeat"], second["t_s"]), {}).update(second)


@events.study_ended.add_listener
def write(study, **_):
    with open(study.folder / "timelines.csv", "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *(map(rows.pop(key).get, COLUMNS) for key in list(rows))])
