"""Gymnasium environments, from a registered id or from a function of the user."""
