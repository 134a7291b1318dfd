"""Locust imports a module of this name, where there is one, before it reads its command line.

It prints --help before it loads the locustfile, whose options would not be in it: so that is loaded here.
"""

import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    from inferswarm.with_locust import load_named

    load_named()
