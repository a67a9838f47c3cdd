"""Outcomes, pairs and designs for tests of statistics and verdicts."""
