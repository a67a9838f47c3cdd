"""Journals of synthetic experiments."""
