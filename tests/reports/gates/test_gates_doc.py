"""docs/gates.md: its example of thresholds is one, and shows every field."""

import re
from pathlib import Path

from reports.gates.thresholds import parse_gates

DOC = Path(__file__).parents[3] / "docs/gates.md"


def test_the_example_can_be_used() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOC.read_text(encoding="utf-8"), flags=re.DOTALL)
    gates = parse_gates(example, "docs/gates.md")
    assert [threshold.require.column for threshold in gates.thresholds] == [
        "latency_p99_ms",
        "images_per_s",
        "latency_p95_ms",
    ]
    assert (gates.baseline, gates.may_differ) == ("main.baseline.json", ("cpu.*",))
    fields = ("name", "require", "of", "severity", "abort_after_s", "least_effect", "place", "may_differ")
    assert all(f"\n{field} = " in example for field in fields)
