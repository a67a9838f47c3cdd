"""Child processes of commands that need torch or users' code: the preflight, `evaluate`."""
