"""`python -m esper_ab.journal.fast.reader REQUEST`: reads a stretch of a journal, and writes a pickled `Stretch`.

Pickle crosses no trust boundary here: the reader of stdout is the process that started this one.
"""

from __future__ import annotations

import gc
import json
import pickle
import sys

from esper_ab.journal.fast.pool import read_stretch

if __name__ == "__main__":
    gc.disable()  # the many objects read are in no cycle
    path, start, end, measures = json.loads(sys.argv[1])
    found = read_stretch(path, start, end, tuple(measures))
    pickle.dump(found, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
