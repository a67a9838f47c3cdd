"""The rules of a verdict, written anew from docs/internals/verdict-rules.md, and laws of simulated runs."""
