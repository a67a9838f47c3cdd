"""Commands of `esper-ab` called by tests, and their lines."""
