"""inferswarm as it is installed: the packages of the suite, which bear common names, stay below this one.

    import inferswarm
    from swarm import events

In a checkout they stand beside it. `import inferswarm` puts their folder first on the path, of this process
and of those that it starts.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE = HERE / "suite" if (HERE / "suite").is_dir() else HERE.parent
"""The folder of `users`, `swarm`, `reports`, `server` and `locustfiles`."""


def add_path(suite: str = str(SUITE)) -> None:
    """Make the suite's packages importable, here and in child processes, before others of their names."""
    others = [
        folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder not in ("", suite)
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join([suite, *others])
    sys.path[:] = [suite, *(folder for folder in sys.path if folder != suite)]


add_path()
