"""Training of the user's own: a Python file or a command."""
