"""Simulated experiments, many at a time, for scripts/validate_statistics."""
