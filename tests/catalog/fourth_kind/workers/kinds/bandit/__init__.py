"""Bandits: arms, payments and random pulls."""
