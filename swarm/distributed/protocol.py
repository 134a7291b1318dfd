"""The types of our messages on Locust's own link, and what a message of progress holds."""

ASK, REPLY, HELLO = "swarm-ask", "swarm-reply", "swarm-hello"
"""Master asks, worker replies; a new worker says hello."""
PARTING = "swarm-parting"
"""A worker that was signalled has drained, says with what, and sends no more."""
RECORDS, PROGRESS = "swarm-records", "swarm-progress"
"""Worker to master: windows and health for the ledger, and how far a phase has come."""
PROGRESS_FIELDS = ("cell", "repeat", "phase", "ok", "failed")
