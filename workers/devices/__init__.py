"""Which devices torch sees, and what pins a process to devices, threads and determinism."""
