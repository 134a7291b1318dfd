"""Fault drills: servers that misbehave on command, the studies that meet them, what must be said."""
