"""Where programs write their outcome, one file per kind of source."""
