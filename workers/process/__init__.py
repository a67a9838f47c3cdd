"""A worker's process: how it starts, its connection and its loop."""
