"""One file per command of `esper-ab`; modules whose name begins with `_` are for this room only."""
