"""The complete specification of all runs, with its cost, its notes and its text."""
