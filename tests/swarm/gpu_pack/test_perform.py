"""Steps in the time there is: each leaves its results, what is done is not run again, and the rest waits."""

import json
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from swarm.gpu_pack import perform
from swarm.gpu_pack.perform import Marks, Places, main, run_for
from swarm.gpu_pack.steps import STEPS, LentHost, PackStep
from swarm.hosts.host import ROOT
from tests.processes import alive, eventually, wait_until

STUDY = """\
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[-1], "step7-x")
folder.mkdir(parents=True)
(folder / "cells.csv").write_text(sys.argv[1])
if sys.argv[1] != "unreported":
    (folder / "report.html").write_text("the report")
(folder / "study.json").write_text(json.dumps({"findings": ["what " + sys.argv[1] + " found"]}))
print("the log of", sys.argv[1])
sys.exit(int(sys.argv[2]))
"""
WAITING = """\
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[-1], "step7-x")
folder.mkdir(parents=True)
def end(*_):
    (folder / "cells.csv").write_text("cut short")
    sys.exit(130)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
time.sleep(60)
"""
ALL = LentHost(dict.fromkeys(("pytorch", "torch", "inductor", "onnx", "trt", "links"), ""))


def study(name: str, exit_code: int = 0, least_s: float = 1) -> PackStep:
    return PackStep(name, name, least_s, lambda host: (sys.executable, "-c", STUDY, name, str(exit_code)))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "out").mkdir()
    return Places(tmp_path / "home", tmp_path / "out", time.time() + 300)


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "home/steps", {"commit": "abc"})


def states(marks: Marks, *steps: PackStep) -> list[str]:
    return [str(marks.of(step)["state"]) for step in steps]


def packed(places: Places, name: str) -> dict[str, str]:
    with tarfile.open(places.out / f"{name}.tar.gz") as found:
        members = [(member, found.extractfile(member)) for member in found.getmembers()]
        return {member.name: file.read().decode() for member, file in members if file}


def test_each_step_leaves_its_results_even_where_one_fails(places: Places, marks: Marks) -> None:
    steps = [study("a", 1), study("b", 3), study("c")]
    perform.perform(steps, ALL, places, marks)
    assert states(marks, *steps) == ["failed", "done", "done"]
    assert marks.of(steps[0])["said"] == "what a found"
    for name in "abc":
        found = {"report.html": "the report", "cells.csv": name, f"{name}.log": f"the log of {name}\n"}
        found["study.json"] = json.dumps({"findings": [f"what {name} found"]})
        assert packed(places, name) == {f"{name}/{file}": text for file, text in found.items()}


def test_a_study_without_a_report_has_failed(places: Places, marks: Marks) -> None:
    """It ends with 3 as one that is inconclusive does."""
    step = study("unreported", 3)
    perform.perform([step], ALL, places, marks)
    assert states(marks, step) == ["failed"]


def test_a_step_that_says_nothing_is_told_by_the_end_of_its_log(places: Places, marks: Marks) -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no such option')")
    step = PackStep("a", "a", 1, lambda host: command)
    perform.perform([step], ALL, places, marks)
    assert (states(marks, step), marks.of(step)["said"]) == (["failed"], "no such option")


def test_what_is_done_is_not_run_again_and_what_failed_comes_last(places: Places, marks: Marks) -> None:
    first, second = study("a", 1), study("b")
    perform.perform([first, second], ALL, places, marks)
    ran: list[str] = []

    def noting(name: str) -> PackStep:
        return study(name)._replace(options=lambda host: (ran.append(name), study(name).options(host))[1])  # type: ignore[func-returns-value]

    again = [noting(name) for name in "abc"]
    perform.perform(again, ALL, places, marks)
    assert ran == ["c", "a"]
    assert states(marks, *again) == ["done"] * 3
    perform.perform(again[1:2], ALL, places, marks, again=True)
    assert ran == ["c", "a", "b"]
    other = Marks(places.home / "steps", {"commit": "def"})
    assert states(other, *again) == ["left"] * 3


def test_what_was_skipped_is_tried_again_once_it_can_run(places: Places, marks: Marks) -> None:
    lacking = study("a")._replace(options=lambda host: "no libpython")
    perform.perform([lacking], ALL, places, marks)
    assert (states(marks, lacking), marks.of(lacking)["said"]) == (["skipped"], "no libpython")
    perform.perform([study("a")], ALL, places, marks)
    assert states(marks, lacking) == ["done"]


def test_a_step_that_fails_with_what_compiles_is_run_without_it(places: Places, marks: Marks) -> None:
    def options(host: LentHost) -> tuple[str, ...]:
        name = "a inductor" if host.runs("inductor") else "a"
        return (sys.executable, "-c", STUDY, name, "2" if host.runs("inductor") else "0")

    steps = [PackStep(name, name, 1, options) for name in ("one", "two")]
    perform.perform(steps, ALL, places, marks)
    assert states(marks, *steps) == ["done", "done"]
    assert packed(places, "one")["one/cells.csv"] == packed(places, "two")["two/cells.csv"] == "a"
    assert packed(places, "one")["one/one.log"] == "the log of a inductor\nthe log of a\n"
    why = "Without inductor, with which its servers did not start in one. what a found"
    assert [marks.of(step)["said"] for step in steps] == [why, why]


def test_requests_that_failed_are_not_blamed_on_what_compiles(places: Places, marks: Marks) -> None:
    options = (sys.executable, "-c", STUDY, "a inductor", "1")
    step = PackStep("a", "a", 1, lambda host: options)
    perform.perform([step], ALL, places, marks)
    assert (states(marks, step), packed(places, "a")["a/a.log"]) == (["failed"], "the log of a inductor\n")


def test_each_servers_log_has_its_end(places: Places, marks: Marks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "LOG_BYTES", 5)
    logs = "(folder / 'logs').mkdir()\n(folder / 'logs/torch.log').write_text('0123456789')\n"
    script = STUDY.replace("sys.exit(int(sys.argv[2]))\n", logs)
    step = PackStep("a", "a", 1, lambda host: (sys.executable, "-c", script, "a", "0"))
    perform.perform([step], ALL, places, marks)
    assert packed(places, "a")["a/logs/torch.log"] == "56789"


def test_a_step_without_the_time_it_needs_is_not_begun(places: Places, marks: Marks) -> None:
    clock = iter(range(1000, 2000))
    places.deadline_s = 1000 + perform.RESERVE_S + 60
    steps = [study("long", least_s=100), study("short", least_s=10)]
    perform.perform(steps, ALL, places, marks, lambda: float(next(clock)))
    assert states(marks, *steps) == ["left", "done"]


def test_a_study_at_the_end_of_its_time_keeps_what_it_has(places: Places, marks: Marks) -> None:
    step = PackStep("a", "a", 1, lambda host: (sys.executable, "-c", WAITING))
    places.deadline_s = time.time() + perform.RESERVE_S + 2
    perform.perform([step], ALL, places, marks)
    assert states(marks, step) == ["cut"]
    assert packed(places, "a") == {"a/a.log": "ready\n", "a/cells.csv": "cut short"}


def test_a_command_ends_with_all_that_it_started(tmp_path: Path) -> None:
    child = "import subprocess, sys; print(subprocess.Popen(['sleep', '61']).pid, flush=True)"
    assert run_for([sys.executable, "-c", child], tmp_path / "log", 30) == 0
    pid = int((tmp_path / "log").read_text())
    assert eventually(lambda: not alive(pid))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[PackStep]:
    """The steps of a pack, in place of its own."""
    steps = [study("a-one"), study("b-two")]
    monkeypatch.setattr(perform, "STEPS", steps)
    monkeypatch.setattr(perform, "ask_doctor", lambda small: ALL)
    return steps


def call(places: Places, *more: str) -> int:
    given = [f"--home={places.home}", f"--out={places.out}", f"--began={time.time()}", "--minutes=2", *more]
    return main(given)


def test_the_call_says_what_was_done(
    places: Places, asked: list[PackStep], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(places, "--steps=a") == 0
    assert call(places) == 0
    summary = (places.out / "summary.txt").read_text().splitlines()
    assert [line.split()[:2] for line in summary[:2]] == [["a-one", "done"], ["b-two", "done"]]
    assert summary[0].endswith("what a-one found")
    assert summary[-1] == "no GPU reported its power, clock or memory"
    assert f"Results: {places.out}" in capsys.readouterr().out
    assert call(places, "--small") == 0
    assert json.loads((places.home / "steps/a-one.json").read_text())["small"] is True


def test_steps_that_are_left_and_that_failed_have_own_codes(places: Places, asked: list[PackStep]) -> None:
    asked[1] = study("b-two", least_s=1_000)
    assert call(places) == 3
    asked[1] = study("b-two", 1)
    assert call(places) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_study_and_keeps_what_it_has(places: Places, number: signal.Signals) -> None:
    code = f"""
import sys
from swarm.gpu_pack import perform
from tests.swarm.gpu_pack.test_perform import ALL, WAITING, PackStep
perform.STEPS = [PackStep("a", "a", 1, lambda host: (sys.executable, "-c", WAITING))]
perform.ask_doctor = lambda small: ALL
sys.exit(perform.main(["--home={places.home}", "--out={places.out}", "--minutes=2", "--began={time.time()}"]))
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    log = places.home / "a.log"
    wait_until(lambda: log.exists() and log.read_text() == "ready\n", 30)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert packed(places, "a")["a/cells.csv"] == "cut short"
    assert "a             cut" in out


def test_an_unknown_step_is_refused(
    places: Places, asked: list[PackStep], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        call(places, "--steps=a,z")
    assert caught.value.code == 2
    assert "'z' is not a step; the steps are a-one, b-two" in capsys.readouterr().err


def test_every_step_says_what_it_runs_or_why_it_cannot() -> None:
    for small in (False, True):
        for step in STEPS:
            command = step.options(ALL._replace(small=small))
            assert isinstance(command, tuple)
            assert command[0] == sys.executable
    alone = LentHost({**dict.fromkeys(ALL.lacks, "no tritonserver"), "pytorch": ""})
    said = {step.name: step.options(alone) for step in STEPS}
    runs = [name for name, one in said.items() if isinstance(one, tuple)]
    assert runs == ["a-timelines", "b-fp32", "b-fp16", "h-repeats"]
    assert said["c-saturation"] == said["f-link"] == said["g-runtimes"] == "no tritonserver"


def test_what_can_run_is_asked() -> None:
    five = "pytorch-http,torch-http,torch-grpc,inductor-http,inductor-grpc"
    steps = {step.name: step.options(ALL) for step in STEPS}
    assert steps["b-fp32"][7] == steps["b-fp16"][7] == steps["h-repeats"][7] == five
    assert steps["g-runtimes"][7] == "onnx-http,onnx-grpc,trt-http,trt-grpc"
    bare = ALL.without("inductor", "it failed").without("trt", "no TensorRT")
    steps = {step.name: step.options(bare) for step in STEPS}
    assert steps["b-fp32"][7] == "pytorch-http,torch-http,torch-grpc"
    assert steps["g-runtimes"][7] == "onnx-http,onnx-grpc"
