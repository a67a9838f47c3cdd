"""The parts of scripts/learn."""
