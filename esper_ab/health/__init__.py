"""Checks of `esper-ab doctor`: one file per subject, each a function from facts to diagnoses."""
