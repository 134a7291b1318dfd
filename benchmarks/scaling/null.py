"""The generator benchmark's null servers, as a study takes them: they say that they know binary tensors.

python -m benchmarks.scaling.null http|grpc PORT
"""

from __future__ import annotations

import importlib
import sys

from benchmarks.generating import answers

NEEDED = "binary_tensor_data"
"""A study refuses a Triton whose extensions lack it."""


def main(argv: list[str]) -> None:
    """Serve until killed."""
    extensions: list[str] = answers.SERVER["extensions"]  # type: ignore[assignment]
    if NEEDED not in extensions:
        extensions.append(NEEDED)
    sys.argv[1:] = argv[1:]
    importlib.import_module(f"benchmarks.generating.null_{argv[0]}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
