"""One folder per kind of task: its rules for settings, plans, analyses and reports.

A file that a kind omits adds nothing. The other rooms ask `kinds_of_task.of_kind` for a concern and import no kind.
"""
