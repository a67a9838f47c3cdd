"""Runs kept for later experiments (--references): their folder, and which stand for planned ones."""
