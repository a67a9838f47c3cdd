"""The rules of a running experiment, as pure functions: no socket, file, thread or clock is imported here."""
