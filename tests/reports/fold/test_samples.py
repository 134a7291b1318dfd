"""What the master samples each second: GPUs, and seconds in which the server did not answer."""

from pathlib import Path

import pytest

from reports.fold.samples import Cost, Readings, costs
from reports.machines.gpus import Gpus, together
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, phase_line, sample_line, triton

MS = 1_000_000


def gpu(number: int, **stated: object) -> Record:
    told = {"util_pct": 50, "memory_bytes": 1_000, "power_w": 100.0, "sm_clock_mhz": 1_400}
    return {"id": number} | told | stated


def with_samples(folder: Path, *lines: Record) -> Summary:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 300}, counters=triton(300, 1, MS))
    book.records += [line | tag for line in lines]
    return load_study(book.write(folder)).runs[0]


def gaps(run: Summary) -> list[str]:
    return [doubt.text for doubt in run.caveats if doubt.code == "probe-gap"]


def test_gpus_are_taken_together() -> None:
    two = [gpu(0), gpu(1, util_pct=100, memory_bytes=3_000, power_w=150.5, sm_clock_mhz=900)]
    assert together(two) == Gpus(75, 4_000, 250.5, 900)


def test_what_one_gpu_does_not_state_is_unknown_of_all() -> None:
    assert together([gpu(0), gpu(1, power_w=None)]) == Gpus(50, 2_000, None, 1_400)
    assert together([]) == Gpus()


def test_over_a_phase_memory_is_the_most_and_the_rest_a_mean() -> None:
    first, second = gpu(0), gpu(0, util_pct=80, memory_bytes=500, power_w=120.0, sm_clock_mhz=1_000)
    host = {"cpu_pct": 10.0}
    readings = [{"gpus": [first], "host": host}, {}, {"gpus": [second], "host": {"cpu_pct": 40.0}}]
    assert Readings(readings).over == Gpus(65, 1_000, 110.0, 1_000)
    assert (Readings(readings).host_cpu_pct, Readings(readings).gpus, Readings().gpus) == (25.0, 1, None)


def at(second: int, joules: float, **stated: object) -> Record:
    return {"second": second, "gpus": [gpu(0, energy_j=joules, **stated)]}


def test_mean_power_is_what_counters_of_energy_gained() -> None:
    """450 J in 3 s, though at its three readings the GPU drew 100 W."""
    assert Readings([at(10, 5_000.0), at(11, 5_020.0), at(13, 5_450.0)]).over.power_w == 150.0
    two = [
        {"second": second, "gpus": [gpu(0, energy_j=joules), gpu(1, energy_j=7.0 + joules)]}
        for second, joules in ((10, 0.0), (14, 200.0))
    ]
    assert Readings(two).over.power_w == 100.0


@pytest.mark.parametrize(
    "readings",
    [
        [at(10, 5_000.0)],
        # Too short a time; a counter that began again, or stands still; one of two GPUs has none.
        [at(10, 5_000.0), at(12, 5_900.0)],
        [at(10, 5_000.0), at(15, 60.0)],
        [at(10, 5_000.0), at(15, 5_000.0)],
        # One that began again and has overtaken itself, and a page that is renewed every 30 s, at a step.
        [at(10, 5_000.0), at(12, 60.0), at(15, 9_000.0)],
        [at(10, 5_000.0), at(12, 8_000.0), at(15, 8_000.0)],
        [
            {"second": second, "gpus": [gpu(0, energy_j=1e3 * second, power_w=40), gpu(1, power_w=60)]}
            for second in (1, 5)
        ],
    ],
)
def test_without_a_gain_it_is_the_mean_of_readings(readings: list[Record]) -> None:
    assert Readings(readings).over.power_w == 100.0


@pytest.mark.parametrize("numbers", [((0,), (0, 1), (0, 1)), ((0, 1), (), (0,)), ((0, 1), (0,), (0, 1))])
def test_where_a_gpu_came_or_went_power_is_unknown(numbers: tuple[tuple[int, ...], ...]) -> None:
    """The readings that there are would be a mean of one GPU's and of two's."""
    readings = [
        {"second": 4 * second, "gpus": [gpu(number, energy_j=1e3 * second) for number in those]}
        for second, those in enumerate(numbers)
    ]
    assert Readings(readings).over.power_w is None


def test_seconds_without_any_reading_do_not_matter() -> None:
    two = {"second": 1, "gpus": [gpu(0), gpu(1)]}
    assert Readings([two, {"second": 2}, {"second": 3, "gpus": []}, two]).over.power_w == 200.0


def test_only_samples_of_the_measure_phase_count(tmp_path: Path) -> None:
    warm_up = sample_line({}, FIRST_SECOND - 1, phase="warm-up", gpus=[gpu(0, memory_bytes=9_000)])
    run = with_samples(tmp_path, warm_up, sample_line({}, gpus=[gpu(0)], server=triton(1_001, 1, MS)))
    assert (run.gpu.util_pct, run.gpu.memory_bytes, run.gpu.power_w) == (50, 1_000, 100.0)
    assert gaps(run) == []


def read(at: int, **stated: object) -> Record:
    return sample_line({}, FIRST_SECOND + at, server=triton(1_000 + at, 1, MS), **stated)


def unread(at: int, *missing: str) -> Record:
    return sample_line({}, FIRST_SECOND + at, missing=list(missing))


PHASES = [
    phase_line({}, "warm-up", "2026-11-21T10:59:50.000Z"),
    phase_line({}, "measure", "2026-11-21T11:00:00.500Z"),
    phase_line({}, "drain", "2026-11-21T11:00:04.200Z"),
]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], None),
        ([read(0), read(1), read(2)], None),
        ([read(0), unread(1, "gpus: no NVML", "server: read timed out"), read(2)], "1 of 3 seconds"),
        ([read(0), unread(1), unread(2)], "2 of 3 seconds without a server reading"),
        # one that tells nothing was asked, too; other sources are told of by themselves
        ([read(0), sample_line({}, FIRST_SECOND + 1, server={}), read(2)], None),
        ([read(0), read(1, missing=["gpus: no NVML"])], "1 of 2 seconds without a gpus reading (no NVML)"),
        # a second without any sample
        ([read(0), read(2)], "1 of 3 seconds without a server reading"),
        # a phase from :00.5 to :04.2 has four seconds that end in it, of which two were never sampled
        ([*PHASES, read(0), read(1)], "2 of 4 seconds without a server reading"),
        ([*PHASES, *(read(at) for at in range(4)), unread(4)], None),
        # a phase that was never sampled, and a ledger without samples, which has only what stands around it
        ([*PHASES, read(-1, phase="warm-up")], "4 of 4 seconds without a server reading"),
        (PHASES, None),
    ],
)
def test_seconds_without_a_reading_of_the_server_are_counted(
    tmp_path: Path, lines: list[Record], text: str | None
) -> None:
    found = gaps(with_samples(tmp_path, *lines))
    assert [said[: len(text or "")] for said in found] == ([text] if text else [])


def test_costs_are_of_an_hour_and_of_a_joule() -> None:
    assert costs(20.0, 50.0, {"usd_per_hour": 1.5}) == Cost(images_per_usd=48_000, joules_per_image=2.5)
    assert costs(20.0, 0, {}) == costs(0, 50.0, {"usd_per_hour": 1.5}) == costs(None, None, {}) == Cost()


def test_a_gap_gives_the_reason_that_was_given_most(tmp_path: Path) -> None:
    silent = [unread(at, "server: read timed out") for at in (1, 2)]
    run = with_samples(tmp_path, read(0), *silent, unread(3, "server: rejected"))
    assert gaps(run) == ["3 of 4 seconds without a server reading (read timed out)"]
    assert not run.tainted


def test_a_phase_may_begin_at_second_0(tmp_path: Path) -> None:
    lost = [sample_line({}, second, missing=["server: refused"]) for second in (0, 1, 2)]
    assert gaps(with_samples(tmp_path, *lost)) == ["3 of 3 seconds without a server reading (refused)"]
