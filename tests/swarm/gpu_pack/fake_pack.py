"""A pack in small: a pip that only notes what it is asked, sources, and the real program that runs it."""

import json
import shutil
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

from swarm.gpu_pack import run
from swarm.gpu_pack.build import binned, write_part

HERE = ".".join(map(str, sys.version_info[:2]))
PIP = """
import pathlib, sys
pathlib.Path(sys.argv[2]).parents[2].joinpath("asked").write_text(" ".join(sys.argv[3:]))
"""
PERFORM = "import sys; print('performing', *(one.partition('=')[0] for one in sys.argv[1:]))"


def fake_pack(folder: Path, python: str = HERE) -> Path:
    """The folder of a pack in three parts, for this Python."""
    files, pack = folder / "files", folder / "pack"
    for made in (files, pack):
        made.mkdir(parents=True)
    with ZipFile(files / "pip-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("pip/__main__.py", PIP)
    (files / "numpy-2-py3-none-any.whl").write_bytes(b"n" * 5_000)
    sources = folder / "tree/swarm/gpu_pack"
    sources.mkdir(parents=True)
    (sources / "perform.py").write_text(PERFORM)
    with tarfile.open(files / run.SOURCES, "w:gz") as packed:
        packed.add(folder / "tree", ".")
    parts = [write_part(part, pack) for part in binned(sorted(files.iterdir()), 18_000)]
    assert [part["name"] for part in parts] == ["part-1.tar", "part-2.tar"]
    (pack / run.MANIFEST).write_text(json.dumps({"python": python, "commit": "abc", "parts": parts}))
    shutil.copy2(run.__file__, pack / "run")
    return pack
