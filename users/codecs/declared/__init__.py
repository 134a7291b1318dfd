"""Endpoints that a file describes: how its templates are filled, and its paths followed."""
