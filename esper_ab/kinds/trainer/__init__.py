"""Training by a Python file or a command of the user."""
