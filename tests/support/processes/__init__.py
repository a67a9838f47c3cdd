"""Start child processes, wait for them, and leave some behind."""
