"""What a locustfile's study needs, for the launcher, which does not import Locust: a process of its own."""

from locust.util.load_locustfile import load_locustfile

import sys

from swarm.study.shape import StudyShape


def main(argv: list[str]) -> int:
    """Print how many workers the study wants."""
    _, shapes = load_locustfile(argv[0])
    studies = [shape for shape in shapes if isinstance(shape, StudyShape)]
    if not studies:
        print(f"{argv[0]} declares no study: add a StudyShape, as the suite's step7 has", file=sys.stderr)
        return 2
    print(studies[0].workers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
