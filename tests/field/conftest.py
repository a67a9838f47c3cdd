"""Tests inside the projects are those of their users, which run in copies of the projects (test_doors.py)."""

collect_ignore = ["projects"]
