"""Names of the files of an answer, in the directory of an experiment or of a joint experiment."""

from __future__ import annotations

SUMMARY, VERDICT, PAGE = "summary.txt", "verdict.json", "report.html"  # for terminals, programs and people
