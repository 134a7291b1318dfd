"""The servers under test: found or started, checked, set."""
