"""Child processes of commands that only growth has: `fetch`, `heuristic`, `rewards`."""
