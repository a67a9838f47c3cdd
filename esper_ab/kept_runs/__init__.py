"""Runs that are kept for later experiments, for --references: which may stand for planned ones, and their folder."""
