"""The rules of a verdict, written anew from docs/internals/verdict-rules.md, and how often they err: see `__main__`."""
