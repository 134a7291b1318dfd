"""The page in Locust's web UI that plans, starts and shows a study: cells as they finish, and charts."""
