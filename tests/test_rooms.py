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
        *("swarm", "users", "reports.ledger", "reports.histogram"),
        # The live page shows the report's own numbers.
        *("reports.fold", "reports.format", "reports.summary"),
        # A study is judged while it runs as it is afterwards.
        *("reports.gates", "reports.buckets", "reports.doubt.client"),
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
    """`reports.ledger` allows itself, what lies in it, and naming its package on the way."""
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
    assert not is_allowed("swarm.plan", ALLOWED["users"])
    assert is_allowed("reports.histogram.empty", ALLOWED["swarm"])


def test_what_servers_are_tested_with_is_not_patched() -> None:
    """Locust patches threads: in one process with it, requests at the same time would come one by one."""
    for path in (ROOT / "tests" / "server").glob("*.py"):
        tops = {name.partition(".")[0] for name in imports(path)}
        assert not tops & {"locust", "gevent", "users", "swarm"}, path


@pytest.mark.parametrize(
    "program", ["swarm.__main__", "swarm.run", "swarm.hosts.command", "swarm.links.command"]
)
def test_what_starts_processes_from_threads_is_not_patched(program: str) -> None:
    """Under gevent a fork in one greenlet waits for ever for a lock that another one holds."""
    code = f"import sys, {program}; print(sorted({{'locust', 'gevent', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
