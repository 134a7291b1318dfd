"""One renderer for each format: HTML, Markdown, CSV, JSON, JUnit, the console."""
