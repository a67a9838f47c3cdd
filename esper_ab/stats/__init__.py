"""Statistics, one per file: arrays in, frozen results out. Independent of journal, files and experiment directories."""
