"""Server: what we serve to be tested."""
