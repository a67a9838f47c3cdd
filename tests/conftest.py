"""Puts tests/ on the path, so that every test finds `support`."""
