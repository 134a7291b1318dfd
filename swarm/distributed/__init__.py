"""Between master and workers: messages, recording, shipping, merging."""
