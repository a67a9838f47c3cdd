"""Coordinators in processes of their own, to be disturbed and killed."""
