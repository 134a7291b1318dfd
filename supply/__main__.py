"""python -m supply lock | licences | audit"""

from __future__ import annotations

import sys

from supply import audit, licences, lock

PARTS = {"lock": lock.main, "licences": licences.main, "audit": audit.main}


def main(argv: list[str]) -> int:
    """Run one of the parts; its exit code."""
    if not argv or argv[0] not in PARTS:
        print(f"usage: python -m supply {' | '.join(PARTS)}", file=sys.stderr)
        return 2
    return PARTS[argv[0]](argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
