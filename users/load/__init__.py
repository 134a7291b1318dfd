"""One virtual user: when it sends, what it sends, what came of it."""
