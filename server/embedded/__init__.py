"""`python -m server up`: servers as children of one process."""
