"""Durable files and the bytes of states."""
