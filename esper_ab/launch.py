"""`python -m esper_ab.launch`: the command that trains and compares, as `esper-ab launch` runs it."""

from __future__ import annotations

import sys

from esper_ab.commands.launch import main

if __name__ == "__main__":
    sys.exit(main())
