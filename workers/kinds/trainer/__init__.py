"""Training of the user's own, by a Python file or a command, guarded and recorded."""
