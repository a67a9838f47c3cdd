"""The decisions of a running experiment, as pure functions: no socket, file, thread or clock."""
