"""Environments of Gymnasium: a registered id, or a user's function."""
