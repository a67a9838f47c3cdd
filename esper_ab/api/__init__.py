"""Experiments as Python: declare, run, look at what came out."""
