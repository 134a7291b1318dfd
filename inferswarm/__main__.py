"""`python -m inferswarm`, as `inferswarm`."""

import sys

from inferswarm.command import main

if __name__ == "__main__":
    sys.exit(main())
