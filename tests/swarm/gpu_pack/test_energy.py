"""Energy, clocks and memory as a table, from the files of a study."""

from pathlib import Path

from swarm.gpu_pack import energy

CELLS = """\
cell,repeat,images_per_s,latency_p50_ms,gpu_util_pct,gpu_memory_bytes,gpu_power_w,joules_per_image
torch-http/b1/c1,1,1149.484179,4.5155,31.0,1500000000,180.00025,0.856561
torch-http/b8/c1,1,900,8.9,,,,
"""
TIMELINE = """\
cell,repeat,phase,gpu_sm_clock_mhz
torch-http/b1/c1,1,warm-up,345
torch-http/b1/c1,1,measure,1980
torch-http/b1/c1,1,measure,1950
torch-http/b1/c1,1,measure,
"""


def test_a_row_for_each_cell_of_which_a_gpu_told_something(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text(CELLS)
    (tmp_path / "timeline.csv").write_text(TIMELINE)
    found = list(energy.rows("b", tmp_path))
    assert found == [("b", "torch-http/b1/c1", "1149.48", "4.516", "31", "180", "0.857", "2", "1965", "1.50")]
    assert energy.table(found).splitlines() == [
        "step  cell              images/s  p50 ms  util %  W    J/image  readings  SM MHz  memory GB",
        "b     torch-http/b1/c1  1149.48   4.516   31      180  0.857    2         1965    1.50",
    ]


def test_without_a_gpu_or_without_files_it_says_so(tmp_path: Path) -> None:
    assert list(energy.rows("b", tmp_path)) == []
    assert energy.table([]) == "no GPU reported its power, clock or memory"
