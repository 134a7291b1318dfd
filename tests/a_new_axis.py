"""python -m tests.a_new_axis FOLDER: a study over the axis that docs/architecture.md adds.

tests/test_extending.py runs it in a copy that has the axis.
"""

from locust.argument_parser import get_empty_argument_parser

import contextlib
import io
import json
import sys
from pathlib import Path

from reports.__main__ import main
from reports.ledger import axes
from swarm.distributed.worker_cell import assignment_of
from swarm.errors import UsageError
from swarm.options.model import Options
from swarm.options.parse import add_options, resolve
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.sweep import cross
from tests.reports.builder import Book
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

MS = 1_000_000
CELL = Cell(Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:1"), 1, 8, 10, 2.0)
IMAGES = ImageSet((b"one",), "test")
STUDY = {"golden": {}, "trace": False, "timeout_s": 1.0, "min_cosine": 0.9}
GATES = '[[threshold]]\nrequire = "failure_ratio <= 0.5"\nbackoff_ms = 250\n'
PARSER = get_empty_argument_parser(default_config_files=[])
add_options(PARSER)


def options(text: str) -> Options:
    return resolve(PARSER.parse_args(["--backoff-ms", text]))


def refusal(text: str) -> str:
    try:
        options(text)
    except UsageError as error:
        return str(error)
    return ""


entries = [PlannedRun(cell, 1).to_record() for cell in cross([CELL], options("0,250").axes)]
folder, book = Path(sys.argv[1]), Book()
for entry in entries:
    tag = book.add("pytorch-http", 1, 8, {"w0": [10 * MS] * 1_000}, axes={"variant": entry["variant"]})
    book.header["plan"][-1] = {**entry, "cell": tag["cell"]}
book.footer()
book.write(folder)
(folder / "thresholds.toml").write_text(GATES)
with contextlib.redirect_stdout(io.StringIO()):
    assert main(["gate", str(folder)]) == 3, "one run decides nothing"
    assert main(["show", "--quiet", str(folder)]) == 0
message = {**entries[1], "endpoint": CELL.endpoint.to_dict(), "addresses": {}}
shown = " ".join(PARSER.format_help().split())
told = {
    "imported": axes.__file__,
    "help": shown[shown.index("--backoff-ms MS[,…] H") :].partition(" --")[0].partition(" Load: open")[0],
    "in_form": "backoff_ms" in PARSER.args_included_in_web_ui,
    "refused": refusal("1s"),
    "planned": [[entry["cell"], entry["backoff_ms"]] for entry in entries],
    # What the assignment has that a worker makes of the master's message.
    "of_users": vars(assignment_of(message, STUDY, IMAGES))["backoff_ms"],
}
print(json.dumps(told))
