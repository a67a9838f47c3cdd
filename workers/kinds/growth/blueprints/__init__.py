"""Catalogue: one file per blueprint of seeds, with `BLUEPRINT`."""
