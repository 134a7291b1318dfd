"""The images, and how they are prepared."""
