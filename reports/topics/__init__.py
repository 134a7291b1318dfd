"""The report's questions, one module for each: tables, chart, answer."""
