"""A worker's process: start, pinned devices, the socket to the coordinator, the loop of its life."""
