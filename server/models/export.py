"""`inferswarm export`: the image tower as ONNX, checked against PyTorch, built once and kept."""

import argparse
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from server.cache import cache
from server.errors import SetUpError
from server.spec import CHECKOUT, ROOT, ModelSpec, add_model_options, model_of

WEIGHTS = ROOT / "triton_repo" / "weights"


def main(argv: list[str]) -> int:
    """Export unless the file is there and current; prints what it does."""
    parser = argparse.ArgumentParser(prog="inferswarm export", description=__doc__)
    add_model_options(parser)
    parser.add_argument("--force", action="store_true", help="export again although nothing has changed")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder (default: triton_repo/weights, or the cache if that cannot be written)",
    )
    parser.add_argument(
        "--repository",
        type=Path,
        metavar="DIR",
        help="also write model repositories for Triton containers on a GPU host there",
    )
    options = parser.parse_args(argv)
    spec, folder = model_of(options), options.out or weights_folder()
    export(spec, folder, options.force)
    if options.repository:
        _lay_out(spec, folder, options.repository)
    return 0


def weights_folder() -> Path:
    """Where exported models lie: in a checkout that is ours to write to, else in the cache."""
    there = WEIGHTS if WEIGHTS.exists() else WEIGHTS.parent
    return WEIGHTS if CHECKOUT and os.access(there, os.W_OK | os.X_OK) else cache("weights")


def export(spec: ModelSpec, folder: Path, force: bool = False) -> None:
    """Make `folder` hold the current ONNX file of `spec` and the stamp that says how it was made."""
    path = onnx_path(spec, folder)
    with _alone(folder):
        if not force and current_stamp(spec, folder):
            print(f"{path.name} is up to date: nothing to export", flush=True)
            return
        print(f"exporting {spec.name} with weights {spec.weights} to ONNX, about 15 seconds...", flush=True)
        difference = _write(spec, path)
    print(f"exported {path.name}; it differs from PyTorch by at most {difference:.1e}", flush=True)


def onnx_path(spec: ModelSpec, folder: Path | None = None) -> Path:
    """Where the ONNX file of `spec` lies: each model and weights has a file of its own."""
    return (folder or weights_folder()) / f"{spec.slug}.onnx"


def stamp_path(onnx: Path) -> Path:
    """The JSON file beside an ONNX file that says how it was made."""
    return onnx.with_suffix(".json")


def current_stamp(spec: ModelSpec, folder: Path | None = None) -> dict[str, object] | None:
    """The stamp of the exported file, or None where there is none or it was made from something else."""
    path = onnx_path(spec, folder)
    try:
        stamp = json.loads(stamp_path(path).read_text())
    except (OSError, ValueError):
        return None
    same = isinstance(stamp, dict) and recipe(spec).items() <= stamp.items()
    return stamp if same and path.exists() else None


def recipe(spec: ModelSpec) -> dict[str, object]:
    """All that decides what the exported file holds: weights, versions and this code."""
    checkpoint = Path(spec.pretrained)
    status = checkpoint.stat() if spec.pretrained and checkpoint.is_file() else None
    code = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("onnx_export.py", "clip.py"))
    return {
        "model": spec.name,
        "pretrained": spec.pretrained,
        "seed": spec.seed,
        "checkpoint": [status.st_size, status.st_mtime_ns] if status else None,
        "versions": {name: version(name) for name in ("torch", "open_clip_torch", "onnx")},
        "code": hashlib.sha256(code).hexdigest(),
    }


def _lay_out(spec: ModelSpec, folder: Path, repository: Path) -> None:
    from server.triton.repository import lay_out

    stamp = current_stamp(spec, folder) or {}
    sha256 = str(stamp.get("weights_sha256", ""))
    facts = {"model": spec.name, "weights": spec.weights, "weights_sha256": sha256}
    try:
        lay_out(onnx_path(spec, folder), repository, facts)
    except OSError as error:
        raise SetUpError(_unwritable("--repository", repository, error)) from error
    print(f"wrote {repository}/onnx and {repository}/trt for Triton containers", flush=True)


def _unwritable(option: str, folder: Path, error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    return f"{option} {folder} cannot be written ({why}): give a folder that you can write to."


def _write(spec: ModelSpec, path: Path) -> float:
    from server.models.onnx_export import write_onnx

    # Written aside and renamed: a reader finds the old file or the new one, never half of one.
    partial = path.with_name(f".{path.name}.partial")
    try:
        sha256, difference = write_onnx(spec, partial)
        stamp = {**recipe(spec), "weights_sha256": sha256, "max_difference": difference}
        stamp_path(path).unlink(missing_ok=True)
        partial.replace(path)
        partial.write_text(json.dumps(stamp, indent=1) + "\n")
        partial.replace(stamp_path(path))
    finally:
        partial.unlink(missing_ok=True)
    return difference


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    # Two commands that need the same file: the second waits for the first, and then finds it current.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise SetUpError(_unwritable("--out", folder, error)) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
