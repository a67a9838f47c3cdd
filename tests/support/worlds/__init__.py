"""Simulated machines, networks and environments."""
