"""Checks of `esper-ab doctor`, one file per subject, and limits that stop a command before it loads libraries."""
