"""Catalogue: one file per reward mode, with `reward`."""
