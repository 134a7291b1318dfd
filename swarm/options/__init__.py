"""The command line of a study."""
