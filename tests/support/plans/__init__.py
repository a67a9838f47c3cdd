"""Fictitious requests, machines and plans, and worker orders."""
