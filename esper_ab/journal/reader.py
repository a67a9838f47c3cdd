"""A process that reads stretches of journals: a request per line of stdin, its `Stretch` pickled to stdout.

Pickle crosses no border of trust here: who asks is the process that started this one.
"""

from __future__ import annotations

import pickle
import sys

import msgspec

from esper_ab.journal.chunk import read_stretch


def main() -> None:
    """Until stdin ends."""
    for line in sys.stdin.buffer:
        path, start, end = msgspec.json.decode(line, type=tuple[str, int, int])
        pickle.dump(read_stretch(path, start, end), sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
