"""Swarm: many processes, one study."""

from swarm.plan import Cell, Size, serial_and_concurrent
from swarm.shape import StudyShape

__all__ = ["Cell", "Size", "StudyShape", "serial_and_concurrent"]
