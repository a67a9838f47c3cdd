"""Catalogue: one file per task, with `TASK`."""
