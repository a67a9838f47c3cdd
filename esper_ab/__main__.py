"""`python -m esper_ab`: the same as `esper-ab`, where that is not on the path."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))  # the working directory, last: its select.py must not hide the library's
    from esper_ab.commands.cli import main  # after that, because it imports half of the standard library

    sys.exit(main())
