"""Which devices a process sees, and how it is pinned to them."""
