"""Which room may import which: the arrows of the drawing in the README."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"users", "swarm", "server", "reports", "locustfiles"}
ALLOWED = {
    "locustfiles": {"users", "swarm", "server"},
    "swarm": {
        *(
            "swarm",
            "users",
            "reports.ledger.ledger",
            "reports.histogram.codec",
            "reports.ledger.files",
            "reports.ledger.records",
        ),
        "reports.parser",
        # The live page shows the report's own numbers.
        *("reports.fold", "reports.format", "reports.summary.summary"),
        # A study is judged while it runs as it is afterwards.
        *("reports.gates", "reports.histogram.buckets", "reports.caveats.client"),
    },
    "reports": {"reports"},
    "server": {"server"},
    "users": {"users"},
}
NEVER = {"reports": {"locust", "gevent", "torch"}, "users": {"torch"}, "swarm": {"torch"}}


def imports(path: Path) -> set[str]:
    """Modules a file imports, `from a import b` as both `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_allowed(name: str, allowed: set[str]) -> bool:
    """`reports.ledger.ledger` allows itself, what lies in it, and naming its package on the way."""
    return any(f"{name}.".startswith(f"{room}.") or f"{room}.".startswith(f"{name}.") for room in allowed)


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_arrows(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        for name in imports(path):
            top = name.partition(".")[0]
            assert top not in NEVER.get(room, set()), f"{path} imports {name}"
            if top in OURS:
                assert is_allowed(name, ALLOWED[room]), f"{path} imports {name}"


def test_the_check_can_fail() -> None:
    assert not is_allowed("reports.render.html", ALLOWED["swarm"])
    assert not is_allowed("swarm.plan.matrix", ALLOWED["users"])
    assert is_allowed("reports.histogram.codec.empty", ALLOWED["swarm"])


def test_what_servers_are_tested_with_is_not_patched() -> None:
    """Locust patches threads: in one process with it, requests at the same time would come one by one."""
    for path in (ROOT / "tests" / "server").glob("*.py"):
        tops = {name.partition(".")[0] for name in imports(path)}
        assert not tops & {"locust", "gevent", "users", "swarm"}, path


@pytest.mark.parametrize(
    "program", ["swarm.__main__", "swarm.launcher.command", "swarm.hosts.command", "swarm.links.command"]
)
def test_what_starts_processes_from_threads_is_not_patched(program: str) -> None:
    """Under gevent a fork in one greenlet waits for ever for a lock that another one holds."""
    code = f"import sys, {program}; print(sorted({{'locust', 'gevent', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


PROGRAMS = (*sorted(OURS), "benchmarks", "triton_repo")
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
        "import pickle",
        "from marshal import loads",
        "import a, shelve",
        "eval(text)",
        "os.system(f'rm {name}')",
        "subprocess.run(line, shell=True)",
        "subprocess.run(line, shell=asked)",
        "yaml.load(text)",
        "numpy.load(file, allow_pickle=True)",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
    ],
)
def test_that_check_can_fail(source: str) -> None:
    assert dangers(source)


def test_that_check_can_pass() -> None:
    harmless = "model.eval(); re.compile(text); subprocess.run(words, shell=False); yaml.safe_load(text)"
    assert dangers(f"{harmless}; torch.load(file, weights_only=True)") == []
