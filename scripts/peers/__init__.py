"""The parts of scripts/field."""
