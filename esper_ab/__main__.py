"""The program `esper-ab`, and `python -m esper_ab` where that is not on the path."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the program and return its exit status."""
    from esper_ab.live.early_hang_up import remember_hang_ups  # imported here, because sys.path is set first

    remember_hang_ups(sys.argv[1:])
    from esper_ab.commands.cli import main as run  # imported here, because it takes long

    return run()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))  # the working directory, last: its select.py must not hide the library's
    sys.exit(main())  # which imports half of the standard library
