"""Trackers: each a fold over the journal in a process of its own, never on the path of training."""
