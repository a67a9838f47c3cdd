"""The sign-off of a machine with GPUs: ten parts, one file each; scripts/sign_off runs them in the order of parts.py.

A part has TITLE, BUDGET_S, `measure`, `problems` (empty if what was measured is as it must be) and `render` (the lines
of its section in the page). Each runs in a process of its own.
"""
