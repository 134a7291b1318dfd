"""What the first screen says: which is best, how sure that is, what limits it, what to do next."""
