"""One renderer for each format: HTML, Markdown, JSON, JUnit, the console."""
