"""Loads functions that users name, with the modules beside them."""
