"""One virtual user: when it sends, what it sends, and the result."""
