"""All that is changed in Locust itself."""
