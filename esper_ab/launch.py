"""`python -m esper_ab.launch`: the command that trains and compares, as `esper-ab launch` runs it."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))  # the working directory, last: its select.py must not hide the library's
    from esper_ab.live.early_hang_up import remember_hang_ups

    remember_hang_ups(["launch"])
    from esper_ab.commands.launch import main  # after that, because it imports half of the standard library

    sys.exit(main())
