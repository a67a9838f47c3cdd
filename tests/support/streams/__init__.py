"""Ledgers of streams, made without training anything."""
