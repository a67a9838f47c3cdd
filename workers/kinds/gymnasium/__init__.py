"""Environments of Gymnasium, one or many side by side, behind the seam of the engine."""
