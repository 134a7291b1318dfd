"""Exporters: what a study tells while it runs, in the forms that other tools take."""
