"""Statistics, one per file: arrays in, numbers or frozen results out.

The other files hold what several of them share: types, distributions, ranks, rounding, bounds and formats. Nothing here
knows journals, files or experiment directories.
"""
