"""Simulate the named sections, or all, into rates.json, and write the tables of docs/statistics.md."""

import json
import sys
import time
from pathlib import Path

from .cells import SECTIONS

RATES = Path(__file__).with_name("rates.json")

if __name__ == "__main__":
    known = json.loads(RATES.read_text()) if RATES.exists() else {}
    for name in sys.argv[1:] or SECTIONS:
        started = time.process_time()
        rows = SECTIONS[name]()
        known[name] = {"seconds": round(time.process_time() - started), "rows": rows}
        print(f"{name}: {known[name]['seconds']} s", flush=True)
        RATES.write_text(json.dumps({s: known[s] for s in SECTIONS if s in known}, indent=0) + "\n")
