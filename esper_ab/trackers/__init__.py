"""Trackers: each folds the journal in a process of its own, never on the path of training."""
