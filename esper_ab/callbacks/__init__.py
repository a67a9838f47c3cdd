"""Callbacks for trainers of other libraries, one file per library: they write the numbers that `--higher` reads."""
