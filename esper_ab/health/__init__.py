"""Checks of `esper-ab doctor`, one file per subject, and limits that refuse a command before it loads libraries."""
