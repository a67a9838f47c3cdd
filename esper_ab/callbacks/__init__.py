"""Callbacks for other libraries, one file each: they write the numbers that `--higher` reads."""
