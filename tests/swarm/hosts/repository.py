"""Small git repositories for what hosts are sent."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


def repository(folder: Path, files: Mapping[str, str]) -> str:
    """Make one of these files in `folder`, all committed; the commit."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(folder, "init", "-q")
    return commit_all(folder)


def commit_all(folder: Path) -> str:
    """Commit what lies there; the commit."""
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a")
    return git(folder, "rev-parse", "--short=12", "HEAD")


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()
