"""The master: one study, run by run."""
