"""Process that reads stretches of journals: one request per line of stdin, one pickled `Stretch` each to stdout.

Pickle crosses no trust boundary here: the reader of stdout is the process that started this one.
"""

from __future__ import annotations

import gc
import json
import pickle
import sys

from esper_ab.journal.fast.chunk import read_stretch


def main() -> None:
    """Answer requests until stdin ends."""
    gc.disable()  # the many objects read are in no cycle
    for line in sys.stdin.buffer:
        path, start, end, measures = json.loads(line)
        found = read_stretch(path, start, end, tuple(measures))
        pickle.dump(found, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
