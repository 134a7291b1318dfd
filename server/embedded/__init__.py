"""`inferswarm up`: servers as children of one process."""
