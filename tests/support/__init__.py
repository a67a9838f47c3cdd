"""Shared test helpers: worlds, journals, fake workers. Imported as `support`."""
