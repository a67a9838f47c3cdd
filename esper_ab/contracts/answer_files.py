"""Names of the files of an answer, in the directory of an experiment or of a joint experiment."""

from __future__ import annotations

SUMMARY = "summary.txt"  # for terminals
VERDICT = "verdict.json"  # for programs
PAGE = "report.html"  # for people
