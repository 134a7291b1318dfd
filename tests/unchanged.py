"""python -m tests.unchanged COMMIT LEDGER_FOLDER...: a move, merge or rename of modules changes no output.

Runs the same commands in a copy of this tree and in one of COMMIT, with the same interpreter: all reports of
the ledgers, every --help, the options with their defaults, the cells of every study, and what bad input is
told. Exit codes, standard output, standard error and written files must be the same, byte for byte, and so
must the names that others rely on. Nothing is asked for by its module, so that modules may move; no server is
started, and no load.

Exit code: 0 where all is equal, 1 where something differs, 2 where the commit or a folder cannot be used or a
command does not end.
"""

from __future__ import annotations

import argparse
import difflib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EQUAL, DIFFERS, USAGE = 0, 1, 2
AT_A_TIME, PATIENCE_S, MOST_LINES, WIDTH = 2, 120, 14, 180
LEDGER, BESIDE = "ledger.jsonl", ("gates.json", "thresholds.toml")
"""What reports read in a folder. All else there was written by them, and is to be written again."""
ROOMS = ("reports", "server", "swarm", "users")
NAMES = {
    "Prometheus metrics": r"\binferswarm_[a-z0-9_]+",
    "environment variables": r"\bINFERSWARM_[A-Z0-9_]+",
    "HTTP routes": r'\.(?:route|get|post)\(\s*f?"(/[^"]*)',
}
"""Names in the rooms' sources that others rely on, in whichever module they stand."""
VARYING = (
    (rb"(?m)^\[\d{4}-\d\d-\d\d [\d:,]+\] [^/\s]+/", b"[TIME] HOST/", "Locust begins a line of its log so"),
    (rb"(?m)^::(stop-commands::)?[0-9a-f]{32}(::)?$", rb"::\1TOKEN\2", "a gate in GitHub Actions draws it"),
)
"""What differs from run to run: its pattern, what stands in its place, and why."""

SURROUNDINGS = {"PATH": os.environ["PATH"], "COLUMNS": "120", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
ACTIONS = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "job.md", "GITHUB_WORKSPACE": "."}

STUDIES = ("step5a", "step6a", "step6b", "step7", "step7_contention", "step8")
PROGRAMS = """
reports; swarm run; swarm hosts; swarm link; server up; server export; server doctor
server profile; server service; benchmarks.generator; benchmarks.growth; benchmarks.planted; benchmarks.soak
benchmarks.turns
"""
COMMANDS = {
    "help": """
reports --help; reports show --help; reports compare --help; reports gate --help; reports baseline --help
reports calibrate --help; swarm --help; swarm run --help; swarm link --help; swarm hosts --help
swarm hosts check --help; swarm hosts prepare --help; server --help
server up --help; server export --help; server doctor --help; server profile --help; server service --help
""",
    "lists and comparisons": """
swarm link; reports compare step7-a100 step7-rtx4090 --out a
reports compare step6a-a100 step6a-rtx4080 --out b; reports compare step5a step5a-cpu --out c
""",
    "bad input of reports": """
reports; reports frobnicate; reports show; reports show nowhere; reports show damaged; reports gate nowhere
reports show . --usd-per-hour x; reports compare nowhere step7-a100; reports compare step7-a100 --out d
reports baseline nowhere; reports calibrate . --measure p99; reports gate damaged --thresholds bad.toml
""",
    "bad input of swarm": """
swarm; swarm frobnicate; swarm run; swarm run -f x.py --workers -1; swarm run -f x.py --master; swarm hosts
swarm hosts check bad.toml; swarm hosts prepare
swarm link nowhere; swarm link --links none.toml; swarm link --links bad.toml
""",
    "bad input of server and benchmarks": """
server; server frobnicate; server up --only x; server up --emulate x; server up --instances 0
server profile --batch 0; benchmarks.contention x
""",
}
MISTAKES = """
--endpoints nothing; --cells nothing --onnx-http-url 127.0.0.1:1; --pytorch-url gpu-host; --rates 0
--pytorch-url 127.0.0.1:1; --onnx-grpc-url 127.0.0.1:1; --find-rate p98<=1; --arrivals often; --gate bad.toml
--iterations 0; --images nowhere; --channels many; --study x; --load-profile ramp; --queue-delay-us x
--topology 0@0; --client none; --no-such-flag; --help
"""
"""Of a study's options."""
BOUNDS = """
failure_ratio <= 0; latency_p50_ms <= 20; latency_p95_ms <= 1000; latency_max_ms <= 100; images_per_s >= 30
worker_cpu_pct <= 85; requests >= 10; server_queue_ms <= 1; unexplained_share <= 0.2
"""
TO_BASELINE = "latency_p50_ms / baseline <= 1; images_per_s / baseline >= 1"
OF_A_LEDGER = """
reports show shown; reports show half --usd-per-hour 1.5; reports compare shown other half --out compared
reports baseline day1 day2 day3 --out days.json; reports calibrate shown --out calibration.md
reports gate shown --thresholds to.toml --baseline days.json --out judged
reports gate gated --thresholds own.toml; reports gate as_ci --all --thresholds {tree}/.ci/thresholds.toml
reports gate as_example --all --thresholds {tree}/examples/ci/thresholds.toml
"""
"""`half` is the ledger as it was in the middle of its study; the days are the same study of other times."""

SEVERAL = """
import runpy, sys
for line in sys.argv[1:]:
    sys.argv = line.split()
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        print("exit code of", line, "is", ended.code, flush=True)
"""
"""Runs commands in one process, most of whose time goes into its start."""
OPTIONS = """
import sys, argparse, runpy
def tell(parser):
    print(parser.format_help())
    for one in parser._actions:
        print(parser.prog, one.dest, one.option_strings, one.nargs, repr(one.default), one.required)
        for made in one.choices.values() if isinstance(one, argparse._SubParsersAction) else ():
            tell(made)
argparse.ArgumentParser.parse_known_args = lambda parser, *_, **__: sys.exit(tell(parser))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
STUDY = """
import sys
from locust.argument_parser import get_parser
from locust.util.load_locustfile import load_locustfile
from users import Endpoint
_, (shape,) = load_locustfile(sys.argv[1])
parser = get_parser(default_config_files=[])
print(parser.format_help())
for one in parser._actions:
    shown = getattr(one, "include_in_web_ui", None), getattr(one, "env_var", None)
    print(one.dest, one.option_strings, one.nargs, repr(one.default), one.choices, *shown)
ways = "pytorch http jpeg", "onnx http fp32", "onnx grpc fp32", "onnx http json"
endpoints = [Endpoint(way.replace(" ", "-"), *way.split(), "h:1", "clip") for way in ways]
for name, size in shape.sizes.items():
    print(name, *(cell.name for cell in shape.cells(endpoints, size)), sep="\\n  ")
"""
PLACES = """
import sys, importlib.util
print(*(importlib.util.find_spec(name).origin for name in sys.argv[1:]), sep="\\n")
"""


class Job(NamedTuple):
    """What Python runs in a folder of its own that has these files; `{tree}` in a word is the tree."""

    name: str
    words: Sequence[str]
    files: Mapping[str, bytes] = {}
    variables: Mapping[str, str] = {}


class InputError(Exception):
    """The commit or a folder cannot be used."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compares, and says what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.unchanged", description=__doc__)
    parser.add_argument("commit", metavar="COMMIT", help="what this tree is compared with, e.g. HEAD")
    parser.add_argument("ledgers", metavar="LEDGER_FOLDER", nargs="+", type=Path, help="what a study left")
    arguments = parser.parse_args(argv)
    try:
        jobs = [*jobs_of_ledgers(read(arguments.ledgers)), *jobs_of_programs()]
        with tempfile.TemporaryDirectory(prefix="unchanged-") as made:
            # Paths of one length: what is cut or folded to a width, is at the same place.
            old, new = Path(made).resolve() / "old", Path(made).resolve() / "new"
            check_out(arguments.commit, old / "tree")
            copy_here(new / "tree")
            counts = list(compared(jobs, old, new))
    except (InputError, subprocess.TimeoutExpired) as error:
        print(f"tests.unchanged: {error}", file=sys.stderr)
        return USAGE
    outputs, differing = map(sum, zip(*counts, strict=True))
    verdict = f"{differing} differ" if differing else "all equal"
    print(f"{len(counts)} commands and names, {outputs} outputs, compared with {arguments.commit}: {verdict}")
    return DIFFERS if differing else EQUAL


def read(folders: Iterable[Path]) -> dict[str, dict[str, bytes]]:
    """What reports read in each folder, by the folder's name. Raises InputError."""
    found: dict[str, dict[str, bytes]] = {}
    for folder in folders:
        name = "-".join(folder.resolve().name.split())
        if name in found or not (folder / LEDGER).is_file():
            raise InputError(f"{folder}: name folders that have a {LEDGER}, and names of their own")
        paths = [folder / file for file in (LEDGER, *BESIDE)]
        found[name] = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return found


def parts(text: str) -> list[str]:
    """What stands in a table above, apart from each other."""
    return [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]


def thresholds(bounds: str) -> bytes:
    """A file of them."""
    return "".join(f'[[threshold]]\nrequire = "{bound}"\n' for bound in parts(bounds)).encode()


def jobs_of_ledgers(ledgers: Mapping[str, Mapping[str, bytes]]) -> Iterator[Job]:
    """Every report of every ledger, and some of it and the next one."""
    names = list(ledgers)
    bounds = {"own.toml": thresholds(BOUNDS), "to.toml": thresholds(TO_BASELINE)}
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        own, whole = ledgers[name], ledgers[name][LEDGER]
        folders = dict.fromkeys(("shown", "gated", "as_ci", "as_example"), own)
        folders |= {"other": ledgers[other], "half": {LEDGER: whole[: len(whole) // 2]}}
        for number in (1, 2, 3):
            began = b'"started_utc":"2'
            folders[f"day{number}"] = {LEDGER: whole.replace(began + b"0", began + b"%d" % number, 1)}
        files = {f"{folder}/{file}": folders[folder][file] for folder in folders for file in folders[folder]}
        words = ("-c", SEVERAL, *parts(OF_A_LEDGER))
        yield Job(f"reports of {name}", words, bounds | files, ACTIONS)
    yield Job(f"reports of {name} outside of GitHub Actions", words, bounds | files)


def jobs_of_programs() -> Iterator[Job]:
    """Every --help, every program's options and those of its sub-commands, and bad input."""
    bad = {"bad.toml": thresholds("latency_p51_ms <= 1"), f"damaged/{LEDGER}": b'{"kind": "header"}\n'}
    for name, text in COMMANDS.items():
        yield Job(name, ("-c", SEVERAL, *parts(text)), bad)
    for program in parts(PROGRAMS):
        yield Job(f"options of {program}", ("-c", OPTIONS, *program.split()))
    for study in STUDIES:
        yield Job(f"options and cells of {study}", ("-c", STUDY, f"{{tree}}/locustfiles/{study}.py"))
    for mistake in parts(MISTAKES):
        words = ("-m", "locust", "-f", "{tree}/locustfiles/step7.py", "--headless", *mistake.split())
        yield Job(f"step7 {mistake}", words, bad)


def git(*words: str) -> bytes:
    """What git prints here. Raises InputError."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    if done.returncode:
        raise InputError(f"git {' '.join(words)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def check_out(commit: str, place: Path) -> None:
    """The commit's files. Raises InputError."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit))) as files:
        files.extractall(place, filter="data")


def copy_here(place: Path) -> None:
    """This tree's files as they are, without those that git ignores. Raises InputError."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
    for name in filter(None, listed):
        if os.path.lexists(ROOT / name):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name, follow_symlinks=False)


def compared(jobs: Sequence[Job], old: Path, new: Path) -> Iterator[tuple[int, int]]:
    """Runs all in both trees: of each the number of outputs, and of those that differ. Raises InputError."""
    for place in (old, new):
        origins = outputs(Job("", ("-c", PLACES, *ROOMS)), place)["stdout"].decode().splitlines()
        if origins != [f"HERE/tree/{room}/__init__.py" for room in ROOMS]:
            raise InputError(f"not the modules of this tree are imported, but {', '.join(origins)}")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        pairs = pool.map(
            lambda job, number: [outputs(job, place, number) for place in (old, new)], jobs, count(1)
        )
        for job, pair in zip(jobs, pairs, strict=True):
            yield told(job.name, *pair)
    yield told("names in the source", names_in(old / "tree"), names_in(new / "tree"))


def outputs(job: Job, place: Path, number: int = 0) -> dict[str, bytes]:
    """What a command gives in one tree, by name: its exit code, what it prints, and every file it writes."""
    folder = place / f"{number:04}"
    for name, content in job.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    folder.mkdir(exist_ok=True)
    words = [word.replace("{tree}", str(place / "tree")) for word in job.words]
    variables = {**SURROUNDINGS, **job.variables, "HOME": str(folder), "PYTHONPATH": str(place / "tree")}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    found = {"exit code": f"{done.returncode}\n".encode(), "stdout": done.stdout, "stderr": done.stderr}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (content := path.read_bytes()) != job.files.get(name):
            found[name] = content
            if path.suffix == ".csv":
                found[f"columns of {name}"] = content.partition(b"\n")[0]
    shutil.rmtree(folder)
    return {name: settled(content, place) for name, content in found.items()}


def settled(content: bytes, place: Path) -> bytes:
    """Without its tree's path, and what varies from run to run."""
    content = content.replace(str(place).encode(), b"HERE")
    for pattern, word, _ in VARYING:
        content = re.sub(pattern, word, content)
    return content


def names_in(tree: Path) -> dict[str, bytes]:
    """NAMES as they stand in the source, each with its room."""
    texts = [
        (room, path.read_text(encoding="utf-8")) for room in ROOMS for path in (tree / room).rglob("*.py")
    ]
    found = {
        title: {f"{room}: {name}\n" for room, text in texts for name in re.findall(pattern, text)}
        for title, pattern in NAMES.items()
    }
    return {title: "".join(sorted(names)).encode() for title, names in found.items()}


def told(name: str, was: Mapping[str, bytes], now: Mapping[str, bytes]) -> tuple[int, int]:
    """Prints a line for it, and what differs; the number of outputs, and of those that differ."""
    every = was.keys() | now.keys()
    differing = sorted(output for output in every if was.get(output) != now.get(output))
    code = f", exit code {now['exit code'].decode().strip()}" if "exit code" in now else ""
    print(f"{'DIFFERS' if differing else 'equal  '} {name}: {len(every)} outputs{code}", flush=True)
    for output in differing:
        old, new = (side.get(output, b"").decode(errors="replace").splitlines() for side in (was, now))
        lines = difflib.unified_diff(old, new, f"{output}, before", f"{output}, now", n=1, lineterm="")
        print("\n".join(f"    {line[:WIDTH]}" for line in islice(lines, MOST_LINES)), flush=True)
    return len(every), len(differing)


if __name__ == "__main__":
    sys.exit(main())
