"""From sampled GPUs to those of the server, what they did together, and what each of them did."""

from pathlib import Path

import pytest

from reports.fold.samples import Readings
from reports.machines.gpus import Gpus, GpuUse, ServersGpus, together
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, sample_line, triton

MS = 1_000_000
GIB = 2**30
IDLE_W, FULL_W = 60.0, 400.0
POWER, HOT, SLOWED = 0x04, 0x20, 0x08 | 0x40


def gpu(name: object, **stated: object) -> Record:
    return {"id": name, "util_pct": 0.0, "power_w": IDLE_W} | stated


def eight(second: int, full: int, **of_full: object) -> Record:
    """One of eight GPUs computes; the counters of energy gain what each draws."""
    gpus = [
        gpu(number, energy_j=1_000.0 + second * IDLE_W) | ({} if number != full else {"util_pct": 100.0})
        for number in range(8)
    ]
    gpus[full] |= {"power_w": FULL_W, "energy_j": 5_000.0 + second * FULL_W} | of_full
    return {"second": second, "gpus": gpus}


def test_the_gpu_that_holds_the_server_counts_alone() -> None:
    """Of all eight the mean utilisation is 12.5 %, and seven idle ones draw 420 W."""
    known = [eight(second, 3, serves=True) for second in range(5)]
    readings = Readings(known)
    assert readings.over == Gpus(util_pct=100.0, power_w=FULL_W)
    assert readings.gpus == 1
    assert [(one.id, one.serves, one.util_pct) for one in readings.each_gpu] == [("3", True, 100.0)]


def test_a_gpu_that_was_marked_once_is_the_servers_in_all_seconds() -> None:
    """A stranger's GPU is 99 % busy; in the third of ten seconds the driver names no process."""

    def second(at: int, marked: bool) -> Record:
        mark = {"serves": True} if marked else {}
        ours, theirs = gpu("ours", util_pct=40.0, power_w=200.0, **mark), gpu("theirs", util_pct=99.0)
        return {"second": at, "gpus": [theirs, ours]}

    for unmarked in (2, 0):
        readings = Readings(second(at, at != unmarked) for at in range(10))
        assert [(one.id, one.serves) for one in readings.each_gpu] == [("ours", True)]
        assert readings.over == Gpus(util_pct=40.0, power_w=200.0)
        assert readings.gpus == 1


def test_a_server_with_a_context_on_each_gpu_that_computes_on_one() -> None:
    """Utilisation is of the one in use; all eight are held for the server, so that what they draw is its."""
    seconds = [eight(at, 3) for at in range(5)]
    for sample in seconds:
        for one_ in sample["gpus"]:
            one_["serves"] = True
    assert Readings(seconds).over == Gpus(util_pct=100.0, power_w=7 * IDLE_W + FULL_W)
    assert Readings([{"second": 1, "gpus": [gpu(at, serves=True) for at in range(2)]}]).over.util_pct == 0.0


def test_where_nobody_tells_which_all_count() -> None:
    unknown = Readings([eight(second, 3) for second in range(5)])
    assert unknown.over == Gpus(util_pct=12.5, power_w=7 * IDLE_W + FULL_W)
    assert unknown.gpus == 8
    assert {one.serves for one in unknown.each_gpu} == {False}


def test_what_the_server_sees_is_less_than_what_it_uses_and_more_than_nothing() -> None:
    three = [gpu("a", visible=True), gpu("b", visible=True, util_pct=50.0), gpu("c", util_pct=90.0)]
    servers = ServersGpus()
    assert [one["id"] for one in servers.of({"gpus": three})] == ["a", "b"]
    assert together(servers.of({"gpus": three})).util_pct == 25.0
    three[1]["serves"] = True
    assert [one["id"] for one in servers.of({"gpus": three})] == ["b"]
    assert servers.of({}) == []
    assert ServersGpus().of({}) == ()


def one(**stated: object) -> GpuUse:
    """Of two seconds, in the first of which it is idle."""
    (found,) = Readings([{"gpus": [gpu("a", power_w=None)]}, {"gpus": [gpu("a", **stated)]}]).each_gpu
    return found


def test_shares_of_what_it_could() -> None:
    found = one(
        util_pct=90.0, power_w=350.0, power_limit_w=400.0, sm_active_pct=40.0, other_processes=2, mig=True,
        memory_bytes=60 * GIB, memory_total_bytes=80 * GIB, sm_clock_mhz=1_200.0, max_sm_clock_mhz=1_500.0,
        pcie_gen=4, pcie_width=8, max_pcie_gen=4, max_pcie_width=16,
        pcie_rx_bytes_per_s=8 * 1.969e9 / 2, pcie_tx_bytes_per_s=1e9,
    )  # fmt: skip
    assert found == GpuUse(
        id="a", util_pct=45.0, sm_active_pct=40.0, power_share=0.875, memory_share=0.75, clock_share=0.8,
        pcie_share=0.5, link="generation 4 x8 of generation 4 x16", other_processes=2,
        mig=True,
    )  # fmt: skip


def test_an_idle_gpu_saves_power_with_low_clocks_and_a_slow_link() -> None:
    found = one(
        util_pct=49.0, sm_clock_mhz=345.0, max_sm_clock_mhz=1_980.0, pcie_gen=1, pcie_width=16,
        max_pcie_gen=5, max_pcie_width=16,
    )  # fmt: skip
    assert (found.clock_share, found.link) == (None, "")


def test_memory_by_what_is_free_where_the_whole_is_not_told() -> None:
    assert one(memory_bytes=30 * GIB).memory_share is None
    assert one(memory_bytes=30 * GIB, memory_free_bytes=10 * GIB).memory_share == 0.75


@pytest.mark.parametrize(
    ("reasons", "held"),
    [
        ([POWER, POWER, 0x1, 0], {"its power limit": 0.5}),
        (
            [POWER | HOT, SLOWED, None],
            {"its power limit": 0.5, "its temperature": 1.0, "a hardware slowdown": 0.5},
        ),
        ([0x1, 0x2, 0x10], {}),  # idle, clocks as set by its owner, another GPU's
        ([], {}),
    ],
)
def test_what_held_its_clocks_down(reasons: list[int | None], held: dict[str, float]) -> None:
    seconds = [
        {"gpus": [gpu("a", **({} if bits is None else {"throttle_reasons": bits}))]} for bits in reasons
    ]
    (found,) = Readings(seconds or [{"gpus": [gpu("a")]}]).each_gpu
    assert found.held_by == held


def test_a_ledger_tells_of_the_servers_gpu_and_of_its_machine(tmp_path: Path) -> None:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 300}, counters=triton(300, 1, MS))
    for at in range(4):
        gpus = eight(at, 3, serves=True, power_limit_w=400.0, other_processes=1)["gpus"]
        book.records.append(sample_line(tag, FIRST_SECOND + at, gpus=gpus, server=triton(1_000 + at, 1, MS)))
    (run,) = load_study(book.write(tmp_path)).runs
    assert (run.gpu.util_pct, run.gpu.power_w, run.gpus) == (100.0, FULL_W, 1)
    assert run.cost.joules_per_image == pytest.approx(FULL_W / (run.counts.images_per_s or 0))
    assert [doubt.code for doubt in run.caveats if doubt.code.startswith("gpu")] == ["gpu-shared"]
    assert run.each_gpu[0].power_share == 1.0


@pytest.mark.parametrize(
    ("told", "local"),
    [
        ({"local": True, "embedded": False}, True),
        ({"local": False, "embedded": False}, False),
        ({"embedded": True}, True),  # an older ledger: its study started the server
        ({"embedded": False}, None),
        ({}, None),
    ],
)
def test_is_the_server_on_the_masters_host(tmp_path: Path, told: dict[str, bool], local: bool | None) -> None:
    book = Book(endpoints={"onnx-http": {"url": "127.0.0.1:8010", "model": "m"} | told})
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 300}, counters=triton(300, 1, MS))
    (run,) = load_study(book.write(tmp_path)).runs
    assert run.local is local
