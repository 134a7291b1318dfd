"""`make mutants`: plants small faults one at a time, and counts those that the tests near by notice.

make mutants                                  one in five of every group of groups.toml: modules that make
                                              numbers or keep data
make mutants ARGS=histogram                   all of this group
make mutants ARGS="gates --only '*.judge.*'"  of a group, those of this module
make mutants ARGS="--only '*'"                all of all, which takes some hours

mutmut plants them. Those that mypy refuses do not count, nor other words in a message, nor those of
equivalent.toml, which change nothing that can be seen. What was noticed is kept in .cache/mutants and tried
again when its function changes; --fresh forgets it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PLACE = ROOT / ".cache" / "mutants"
ROOMS = ("users", "server", "swarm", "reports")
COPIED = (
    "benchmarks",
    "docs",
    "examples",
    "locustfiles",
    ".ci",
    "README.md",
    "requirements.txt",
    "triton_repo",
)
SAMPLE = "*[27]"
"""One in five: those whose number ends so."""
BOUND = 90.0
"""Of a hundred mutants, how many the tests of each group must notice."""
NOTICED = ("killed", "timeout", "segfault", "suspicious")
CONFIGURATION = """
[tool.mutmut]
source_paths = {rooms}
only_mutate = {modules}
also_copy = {copied}
process_isolation = "forkserver"
timeout_multiplier = 8.0
timeout_constant = 4.0
track_dependencies = false
on_dependency_change = "ignore"
pytest_add_cli_args = ["-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = ["-m", "{marked}", {tests}]
type_check_command = {mypy}
do_not_mutate_patterns = ['raise \\w+\\("']
"""
STRICT = re.compile(r", (strict=\w+)?\)")
TEXT = re.compile(r'f?"[^"]*"')
PROGRESS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""What mutmut's lines begin with that only say how far it is."""
MYPY = ("--output=json", "--disable-error-code=has-type", "--no-warn-unused-ignores", "--no-warn-unreachable")


class Group(NamedTuple):
    """Modules (patterns of paths) and the tests that must notice faults in them."""

    modules: list[str]
    tests: list[str]
    system: bool = False


class Mutant(NamedTuple):
    """One planted fault: the function that it stands in, its first changed line before and after."""

    function: str
    was: str
    now: str


def main(argv: Sequence[str] | None = None) -> int:
    """0 where every group's tests notice BOUND % of its mutants."""
    groups = {name: Group(**found) for name, found in _toml("groups.toml").items()}
    options = parsed(argv, list(groups))
    scores: list[float] = []
    for name in options.groups or groups:
        began = time.monotonic()
        place = prepared(name, groups[name], fresh=options.fresh)
        print(f"{name}: how far it is says {place / 'log'}", file=sys.stderr, flush=True)
        try:
            planted(place, options.only, options.processes)
        except KeyboardInterrupt:
            print("\nStopped; what was noticed so far is kept.")
            return 130
        scores.append(judged(name, place, groups[name], whole=options.only == ["*"]))
        print(f"{name:36} {time.monotonic() - began:6.0f} s", flush=True)
    return int(any(score < BOUND for score in scores))


def parsed(argv: Sequence[str] | None, groups: Sequence[str]) -> argparse.Namespace:
    """The command's options; exit code 2 where they do not fit together."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(groups)} (default: all)")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help=f"of mutmut's names, those like these (default: '*' of groups that are named, else '{SAMPLE}')",
    )
    parser.add_argument("--fresh", action="store_true", help="try again what was noticed before, too")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="at once (default: %(default)s)"
    )
    options = parser.parse_args(argv)
    if unknown := [name for name in options.groups if name not in groups]:
        parser.error(f"{unknown[0]} is no group: give some of {', '.join(groups)}")
    options.only = options.only or ["*" if options.groups else SAMPLE]
    return options


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def prepared(name: str, group: Group, *, fresh: bool) -> Path:
    """A group's own folder, in which mutmut keeps what it did, with links to the checkout."""
    place = PLACE / name
    if fresh:
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True, exist_ok=True)
    for link in (*ROOMS, *COPIED, "tests"):
        if not (place / link).is_symlink():
            (place / link).symlink_to(ROOT / link)
    marked = "not slow" if group.system else "not system and not slow"
    configuration = CONFIGURATION.format(
        rooms=list(ROOMS),
        modules=group.modules,
        copied=list(COPIED),
        marked=marked,
        tests=str(group.tests)[1:-1],
        mypy=[sys.executable, "-m", "mypy", *MYPY, *files(group)],
    )
    ours = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (place / "pyproject.toml").write_text(ours + configuration, encoding="utf-8")
    # Tests may have changed: which reach a function is asked again, and what they missed tried again.
    shutil.rmtree(place / "mutants" / "tests", ignore_errors=True)
    (place / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    for kept in place.glob("mutants/**/*.meta"):
        found = json.loads(kept.read_text(encoding="utf-8"))
        codes = found["exit_code_by_key"]
        found["exit_code_by_key"] = {
            key: code if _status(code) in NOTICED else None for key, code in codes.items()
        }
        kept.write_text(json.dumps(found), encoding="utf-8")
    return place


def planted(place: Path, names: Sequence[str], processes: int) -> None:
    """Runs mutmut there; what it says goes to its log."""
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(processes), *names]
    with (place / "log").open("w", encoding="utf-8") as log:
        code = subprocess.run(command, cwd=place, stdout=log, stderr=subprocess.STDOUT).returncode
    if code:
        said = (place / "log").read_text(encoding="utf-8").replace("\r", "\n").splitlines()
        said = [line for line in said if line and line[0] not in PROGRESS]
        raise SystemExit(
            "\n".join([*said[-30:], f"mutmut ended with exit code {code}; its log: {place / 'log'}"])
        )


def judged(name: str, place: Path, group: Group, *, whole: bool) -> float:
    """Prints what was missed and the score of each module; the group's score."""
    argued = {
        Mutant(entry["in"], entry["was"], entry["now"]) for entry in _toml("equivalent.toml").get(name, [])
    }
    modules: dict[str, Counter[str]] = {}
    survived: set[Mutant] = set()
    with chdir(place):
        for module, key, status in mutants(group):
            if status in ("survived", "no tests"):
                mutant = described(module, key)
                survived.add(mutant)
                if mutant in argued or alike(mutant):
                    status = "equivalent"
                else:
                    print(f"{status}: {mutant.function}\n  - {mutant.was}\n  + {mutant.now}")
            modules.setdefault(module, Counter())[status] += 1
    for mutant in sorted(argued - survived) if whole else ():
        print(f"in equivalent.toml, but noticed: {mutant.function}\n  - {mutant.was}\n  + {mutant.now}")
    total = sum(modules.values(), Counter[str]())
    for module, counts in [*modules.items(), (name, total)]:
        print(f"{module:36} {score(counts):6.1f} %  {shown(counts)}")
    return score(total)


def mutants(group: Group) -> Iterator[tuple[str, str, str]]:
    """Each mutant of a group: its module, mutmut's name for it, and what became of it."""
    for module in files(group):
        kept = Path("mutants", f"{module}.meta")
        if kept.exists():
            for key, code in json.loads(kept.read_text(encoding="utf-8"))["exit_code_by_key"].items():
                yield module, key, _status(code)


def files(group: Group) -> list[str]:
    """The paths of a group's modules."""
    found = (path for pattern in group.modules for path in ROOT.glob(pattern))
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix == ".py")


def _status(code: int | None) -> str:
    from mutmut.stats import status_by_exit_code

    return str(status_by_exit_code[code])


def described(module: str, key: str) -> Mutant:
    """What a mutant changes. The working directory must be its group's."""
    import mutmut.configuration
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.utils.format_utils import orig_function_and_class_names_from_key

    mutmut.configuration.reset_config()
    function, owner = orig_function_and_class_names_from_key(key)
    lines = get_diff_for_mutant(key, path=module).splitlines()[2:]
    was, now = ([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
    changed = next(
        (pair for pair in zip(was, now, strict=False) if pair[0] != pair[1]), (was or now or [""],) * 2
    )
    return Mutant(f"{module}: {owner + '.' if owner else ''}{function}", str(changed[0]), str(changed[1]))


def alike(mutant: Mutant) -> bool:
    """Whether only a message's words differ, the case of "utf-8", or whether zip() is strict."""
    was, now = (STRICT.sub(")", line).replace('"UTF-8"', '"utf-8"') for line in (mutant.was, mutant.now))
    words = [text for text in TEXT.findall(was) if text not in TEXT.findall(now)]
    others = TEXT.sub('""', was) == TEXT.sub('""', now)
    return was == now or (others and len(words) == 1 and " " in words[0].strip())


def score(counts: Counter[str]) -> float:
    """Noticed, of a hundred of those that count and were tried; 100 where there is none."""
    noticed = sum(counts[status] for status in NOTICED)
    tried = noticed + counts["survived"] + counts["no tests"]
    return 100.0 * noticed / tried if tried else 100.0


def shown(counts: Counter[str]) -> str:
    words = {"caught by type check": "refused by types", "no tests": "reached by no test"}
    return ", ".join(f"{count:,} {words.get(status, status)}" for status, count in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
