"""The rules of a verdict, written anew from docs/statistics.md, and how often they err: `python -m tests.simulation`."""
