"""Trackers: each folds the journal in a process of its own, which never delays training."""
