"""The rules of a verdict, written anew from docs/statistics.md, and how often they err: see `__main__`."""
