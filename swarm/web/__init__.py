"""The live page in Locust's web UI: cells as they finish, and charts of the one that is running."""
