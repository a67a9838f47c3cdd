"""Stored experiments and stored refusals."""
