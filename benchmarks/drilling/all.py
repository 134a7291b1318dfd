"""Every drill, in the order in which they are carried out."""

from benchmarks.drilling import of_answers, of_network, of_servers, of_suite

DRILLS = (*of_servers.DRILLS, *of_answers.DRILLS, *of_network.DRILLS, *of_suite.DRILLS)
