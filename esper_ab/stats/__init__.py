"""Statistics, one per file: arrays in, frozen results out.

Independent of journals, files and experiment directories.
"""
