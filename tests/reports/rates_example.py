"""The fixed study behind the golden files of open-loop load: a rate search, with all that is sampled."""

from tests.reports.builder import Book
from tests.reports.example import MS, lognormal
from tests.reports.lines import FIRST_SECOND, Record, health_line, phase_line, sample_line, triton

# endpoint: (asked rate, p50 in ms, results per worker, dropped per worker, CPU % of the busier worker)
WAYS = {
    "onnx-http": [
        (20, 30.0, 600, 0, 35.0),
        (40, 60.0, 600, 0, 41.0),
        (60, 70.0, 600, 0, 97.5),
        (80, 190.0, 600, 7, 62.0),
    ],
    "pytorch-http": [(20, 140.0, 600, 0, 30.0)],
    "openvino-grpc": [(20, 25.0, 90, 0, 22.0), (40, 28.0, 90, 0, 30.0)],
}
GIB = 1 << 30


def rates_example() -> Book:
    """One bound is found between two rates, one is met at no rate, one at every rate that was tried."""
    options = {"command": "locust -f locustfiles/step7.py --find-rate 'p99<=100'", "find_rate": "p99<=100"}
    book = Book(title="Step 7: the highest rate", options=options)
    for name, rates in WAYS.items():
        book.endpoint(name, "127.0.0.1:8010")
        for place, (rate, median_ms, count, dropped, cpu_pct) in enumerate(rates):
            loads = {worker: lognormal(seed, median_ms, count) for seed, worker in enumerate(("w0", "w1"))}
            counters = triton(2 * count, 1, round(0.8 * median_ms * MS))
            tag = book.add_open(name, rate, loads, dropped=dropped, late=place, counters=counters)
            book.records += sampled(tag, rate, cpu_pct)
            if place:
                book.plan_later()
    book.footer()
    return book


def sampled(tag: Record, rate: int, cpu_pct: float) -> list[Record]:
    """Phases, the workers' health and the master's samples of three seconds."""
    lines = [
        phase_line(tag, "warm-up", "2026-11-21T10:59:59.500Z"),
        phase_line(tag, "measure", "2026-11-21T11:00:00.250Z"),
        phase_line(tag, "drain", "2026-11-21T11:00:02.750Z"),
    ]
    lags_ns = [200_000] * 99 + [round(cpu_pct * 50_000)] * 2
    for at, phase in enumerate(("measure", "measure", "drain")):
        second = FIRST_SECOND + at
        for worker, busy_pct in (("w0", cpu_pct), ("w1", 20.0)):
            state = {"phase": phase, "cpu_pct": busy_pct, "gc_max_ns": 4 * MS}
            lines.append(health_line(tag, worker, second, lags_ns, **state))
        lines.append(sample_line(tag, second, phase=phase, **master(at, rate)))
    return lines


def master(at: int, rate: int) -> Record:
    """What the master knows in each of three seconds; at the lowest rate the server did not answer once."""
    gpu = {"id": 0, "util_pct": 40 + at, "memory_bytes": 2 * GIB, "power_w": 90.5, "sm_clock_mhz": 1_410}
    host = {"cpu_pct": 55.5, "tx_bytes": 1_000_000 * (at + 1), "rx_bytes": 20_000 * (at + 1)}
    known = {"gpus": [gpu], "host": host, "pending_requests": at}
    if at == 1 and rate == 20:
        return known | {"missing": ["server: read timed out"]}
    # As in the readings around the phase, counters begin at 1,000.
    counted = {name: 1_000 + value for name, value in triton(rate * at, 1, 9 * MS).items()}
    return known | {"server": counted}
