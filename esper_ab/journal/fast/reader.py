"""A process that reads stretches of journals: a request per line of stdin, its `Stretch` pickled to stdout.

Pickle crosses no border of trust here: who asks is the process that started this one.
"""

from __future__ import annotations

import gc
import json
import pickle
import sys

from esper_ab.journal.fast.chunk import read_stretch


def main() -> None:
    """Until stdin ends."""
    gc.disable()  # what is read is in no cycle, and there is much of it
    for line in sys.stdin.buffer:
        path, start, end = json.loads(line)
        pickle.dump(read_stretch(path, start, end), sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
