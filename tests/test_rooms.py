"""Which package imports which: the table in docs/architecture.md, and what no room may import at all."""

import ast
import functools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("locustfiles", "swarm", "users", "server", "reports")
BETWEEN = {
    "locustfiles": {"swarm", "users"},
    "swarm": {
        "users",
        *("reports", "reports.ledger", "reports.histogram"),
        # A study is shown and judged while it runs as it is afterwards.
        *("reports.fold", "reports.caveats", "reports.summary", "reports.study"),
        *("reports.stats", "reports.gates", "reports.machines"),
    },
    **{room: set[str]() for room in ("users", "server", "reports")},
}
"""What a room sees of others: a room's name stands for all of it, but `reports` for its own modules alone."""
NEVER = {"reports": {"locust", "gevent", "torch"}, "users": {"torch"}, "swarm": {"torch"}}
MOST_FILES = 12


class Package(NamedTuple):
    """A row of the table, or what the code has."""

    about: str
    own: frozenset[str]
    others: frozenset[str]


@functools.cache
def imports(path: Path) -> set[str]:
    """Modules a file imports, `from a import b` as both `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def package_of(name: str) -> str:
    """The package of ours that a module lies in; nothing for a package itself, and for others'."""
    is_ours = name.partition(".")[0] in ROOMS
    return name.rpartition(".")[0] if is_ours and (ROOT / f"{name.replace('.', '/')}.py").exists() else ""


@functools.cache
def coded() -> dict[str, Package]:
    """The packages as they are. Entries, `__main__` and `__init__`, stand above all and are left out."""
    found = defaultdict[str, set[str]](set)
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            package = ".".join(path.relative_to(ROOT).parent.parts)
            if not path.stem.startswith("__"):
                found[package] |= {named for name in imports(path) if (named := package_of(name))} - {package}
    return {name: Package(about(name), *parted(name, named)) for name, named in found.items()}


def about(package: str) -> str:
    """The first line of its docstring."""
    text = ast.get_docstring(ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text()))
    return (text or "").partition("\n")[0]


def parted(package: str, named: set[str]) -> tuple[frozenset[str], frozenset[str]]:
    """What a package imports of its own room, and of others."""
    own = {name for name in named if name.partition(".")[0] == package.partition(".")[0]}
    return frozenset(own), frozenset(named - own)


def drawn() -> dict[str, Package]:
    """The rows of the table, in order."""
    found = {}
    for line in (ROOT / "docs/architecture.md").read_text().rpartition("|---|\n")[2].splitlines():
        name, text, own, others = (cell.strip() for cell in line.strip("|").split("|"))
        package, room = name.strip("`"), name.strip("`").partition(".")[0]
        within = {word if word == room else f"{room}.{word}" for word in own.split(", ") if word}
        found[package] = Package(text, frozenset(within), frozenset(filter(None, others.split(", "))))
    return found


def test_the_drawing_says_what_the_code_imports_and_nothing_else() -> None:
    code, table = coded(), drawn()
    assert len(code) > 40
    assert table.keys() == code.keys()
    for name, package in code.items():
        assert table[name] == package, name


def test_imports_go_downwards_only() -> None:
    """Whatever stands in order, row below row, has no circle."""
    rows = list(drawn())
    for name, package in drawn().items():
        for below in package.own:
            assert rows.index(below) > rows.index(name), f"{name} imports {below}, which stands above it"


def test_rooms_see_of_each_other_what_they_may() -> None:
    for name, package in drawn().items():
        allowed = BETWEEN[name.partition(".")[0]]
        for seen in package.others:
            room = "" if seen.startswith("reports") else seen.partition(".")[0]
            assert {seen, room} & allowed, f"{name} imports {seen}"


def test_a_class_has_a_name_of_its_own() -> None:
    """Users of locustfiles apart: Locust shows them by the names that all studies know them by."""
    paths = [path for room in set(ROOMS) - {"locustfiles"} for path in (ROOT / room).rglob("*.py")]
    found = Counter(name for path in paths for name in re.findall(r"(?m)^class (\w+)", path.read_text()))
    assert [name for name, count in found.items() if count > 1] == []


def test_the_files_that_the_page_names_are_there() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    known = {path.name for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) > 40
    for name in named:
        assert (ROOT / name).exists() if "/" in name else name in known, name
    for folder in re.findall(r"`([\w/]+/)`", text):
        assert (ROOT / folder).is_dir(), folder


def test_no_package_is_crowded() -> None:
    for name in coded():
        files = [path for path in (ROOT / name.replace(".", "/")).glob("*.py") if path.stem != "__init__"]
        assert len(files) <= MOST_FILES, name


@pytest.mark.parametrize("room", sorted(NEVER))
def test_what_no_room_may_import(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        assert not {name.partition(".")[0] for name in imports(path)} & NEVER[room], path


def test_what_servers_are_tested_with_is_not_patched() -> None:
    """Locust patches threads: in one process with it, requests at the same time would come one by one."""
    for path in (ROOT / "tests" / "server").rglob("*.py"):
        tops = {name.partition(".")[0] for name in imports(path)}
        assert not tops & {"locust", "gevent", "users", "swarm"}, path


@pytest.mark.parametrize(
    "program", ["swarm.__main__", "swarm.launcher.command", "swarm.hosts.command", "swarm.links.command"]
)
@pytest.mark.system
def test_what_starts_processes_from_threads_is_not_patched(program: str) -> None:
    """Under gevent a fork in one greenlet waits for ever for a lock that another one holds."""
    code = f"import sys, {program}; print(sorted({{'locust', 'gevent', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


PROGRAMS = (*sorted(ROOMS), "benchmarks", "triton_repo")
RUNS_DATA = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
RUNS_TEXT = {
    *("eval", "exec", "compile", "os.system", "os.popen", "pty.spawn", "subprocess.getoutput"),
    *("subprocess.getstatusoutput", "asyncio.create_subprocess_shell"),
}
LOADS_OBJECTS = {"yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all"}
TORCH_LOAD = "torch.load"


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it is called; nothing for what is called by a value."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def dangers(source: str) -> list[str]:
    """What runs data, or text, as a program."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            names = names if isinstance(node, ast.Import) else [node.module or ""]
            found += [name for name in names if name.partition(".")[0] in RUNS_DATA]
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            found += [name] if name in RUNS_TEXT | LOADS_OBJECTS else []
            given = {word.arg: word.value for word in node.keywords if word.arg}
            for word in ("shell", "allow_pickle"):
                value = given.get(word)
                if value is not None and not (isinstance(value, ast.Constant) and value.value is False):
                    found.append(f"{name}({word})")
            weights = given.get("weights_only")
            if name == TORCH_LOAD and not (isinstance(weights, ast.Constant) and weights.value is True):
                found.append(TORCH_LOAD)
    return found


@pytest.mark.parametrize("room", PROGRAMS)
def test_what_strangers_write_is_data_and_never_a_program(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    assert {str(path): found for path in files if (found := dangers(path.read_text()))} == {}


@pytest.mark.parametrize(
    "source",
    [
        *("from marshal import loads", "import a, shelve", "eval(text)", "os.system(f'rm {name}')"),
        *("subprocess.run(line, shell=True)", "subprocess.run(line, shell=asked)", "yaml.load(text)"),
        *("numpy.load(file, allow_pickle=True)", "torch.load(file)", "torch.load(file, weights_only=False)"),
    ],
)
def test_that_check_can_fail_and_pass(source: str) -> None:
    assert dangers(source)
    harmless = "model.eval(); re.compile(text); subprocess.run(words, shell=False); yaml.safe_load(text)"
    assert dangers(f"{harmless}; torch.load(file, weights_only=True)") == []
