"""What the files of an answer are called, in an experiment directory and in that of a joint experiment."""

from __future__ import annotations

SUMMARY, VERDICT, PAGE = "summary.txt", "verdict.json", "report.html"  # for terminals, programs and people
