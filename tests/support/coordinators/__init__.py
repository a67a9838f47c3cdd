"""Coordinators in processes of their own, for tests that disturb and kill them."""
