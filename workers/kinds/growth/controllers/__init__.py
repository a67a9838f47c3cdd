"""Catalogue: one file per controller without learning, with `make`."""
