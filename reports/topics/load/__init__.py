"""How much load, and what more of it brings."""
