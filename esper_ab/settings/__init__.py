"""Flags, TOML and Python become an AskedExperiment, and then a ResolvedExperiment."""
