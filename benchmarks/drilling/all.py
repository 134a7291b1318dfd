"""Every drill, in the order in which they are carried out."""

from benchmarks.drilling import of_answers, of_servers

DRILLS = (*of_servers.DRILLS, *of_answers.DRILLS)
