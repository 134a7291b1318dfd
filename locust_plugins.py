"""Locust imports a module of this name, where there is one, before it reads its command line.

It prints --help before it loads the locustfile, whose options would not be in it: so that is loaded here.
"""

from locust.argument_parser import get_empty_argument_parser
from locust.util.load_locustfile import load_locustfile

import os
import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    options, _ = get_empty_argument_parser(add_help=False).parse_known_args()
    for path in options.locustfile.split(","):
        if os.path.isfile(path):
            load_locustfile(path)
