"""Experiments in Python: declare, run and inspect them."""
