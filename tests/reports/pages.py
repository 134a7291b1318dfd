"""The studies whose pages a real browser opens: good ones, poor ones, and one that is all attack."""

import json
import shutil

import pytest

from tests.reports.builder import Book
from tests.reports.example import MS, example, lognormal
from tests.reports.gates.outcomes import THRESHOLDS, study
from tests.reports.lines import FIRST_SECOND, Record, sample_line

ATTACK = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\'"{value}&lt;|`x`'
RUN_S = 6
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_A_BROWSER = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path: apt-get install chromium"),
]
OPEN_ALL = "document.querySelectorAll('details').forEach((it) => { it.open = true; })"


def apart(book: Book) -> Book:
    """The same with its runs one after the other, as they are in a real study."""
    place: dict[tuple[str, int], int] = {}
    for record in book.records:
        if "second" in record:
            record["second"] += RUN_S * place.setdefault((record["cell"], record["repeat"]), len(place))
    return book


def quick() -> Book:
    """Five endpoints, one run each."""
    book = Book()
    for seed, name in enumerate(("pytorch-http", "onnx-http", "onnx-grpc", "openvino-http", "openvino-grpc")):
        book.endpoint(name, f"127.0.0.1:80{seed:02}", "random (seed 0)")
        for batch in (1, 4):
            book.add(name, batch, 1, {"w0": lognormal(seed, 20.0 + 9 * batch, 60)})
    book.footer()
    return book


def crowded() -> Book:
    """Two ways under more and more users, three repeats of each, with GPUs, a price, and a knee."""
    book = Book(options={"command": "locust -f locustfiles/step7.py", "usd_per_hour": 0.85})
    for seed, (name, sigma, kappa) in enumerate((("onnx-http", 0.03, 0.0004), ("onnx-grpc", 0.1, 0.004))):
        book.endpoint(name, f"127.0.0.1:801{seed}")
        for level in (1, 2, 4, 8, 16, 32):
            slowed = 1 + sigma * (level - 1) + kappa * level * (level - 1)
            for repeat in (1, 2, 3):
                values = lognormal(100 * seed + level + repeat, 8 * slowed, 40 * level)
                tag = book.add(name, 1, level, {"w0": values}, repeat=repeat)
                book.records += [gpus(tag, FIRST_SECOND + at, level / slowed) for at in range(2)]
    book.footer()
    return book


def gpus(tag: Record, second: int, busy: float) -> Record:
    """A second's reading of one GPU that is the busier the more it computes."""
    power_w = 70.0 + 12 * busy
    gpu = {"util_pct": min(100.0, 5 * busy), "memory_bytes": 3_300_000_000, "power_w": power_w}
    return sample_line(tag, second, gpus=[gpu | {"sm_clock_mhz": 1_410}])


def aborted() -> Book:
    """One cell, stopped before its end."""
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.add("onnx-http", 1, 1, {"w0": [9 * MS] * 5}, status="aborted", note="Ctrl-C")
    book.plan("onnx-grpc", 1, 1)
    book.footer("interrupted", "Ctrl-C")
    return book


def attacked() -> Book:
    """Every text that comes from outside is an attack."""
    book = Book(title=ATTACK, fingerprint={ATTACK: ATTACK}, images={"source": ATTACK})
    book.header["options"] = {"command": ATTACK, ATTACK: ATTACK}
    for name in ("onnx-http", "onnx-grpc"):
        book.endpoint(name, ATTACK, weights=ATTACK, model=ATTACK)
    for level in (1, 4, 16):
        axes = {"variant": ATTACK, "link": ATTACK, "channels": ATTACK}
        for name in ("onnx-http", "onnx-grpc"):
            tag = book.add(name, 1, level, {ATTACK: [MS] * 30}, axes=axes, failures={ATTACK: 1}, note=ATTACK)
            book.caveat(tag, ATTACK, ATTACK)
    book.footer("failed", ATTACK)
    return book


PAGES = {"quick": quick, "full": example, "crowded": crowded, "aborted": aborted, "empty": Book}
PAGES |= {"attacked": attacked, "gated": study}
"""What is written into a ledger, by its name; `full` has failures, lost workers and a run that never came."""
GATES = {
    "gated": THRESHOLDS.replace('"gRPC keeps up"', json.dumps(ATTACK)),
    "attacked": f"""[[threshold]]
require = "latency_p50_ms <= 0.1"
name = {json.dumps(ATTACK)}
""",
}
"""The thresholds that some of them are judged by."""
