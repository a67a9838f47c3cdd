"""Simulate all sections, or the named ones, into rates.json; then write the tables of docs/statistics.md."""

import json
import sys
import time
from pathlib import Path

from .cells import SECTIONS
from .tables import render

RATES = Path(__file__).with_name("rates.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"
BEGIN, END = "<!-- rates table -->\n", "\n<!-- /rates table -->"


def main(names: list[str]) -> None:
    """`tables` names no section: only the page is written."""
    for name in names or list(SECTIONS):
        if name == "tables":
            continue
        started = time.process_time()
        rows, seconds = SECTIONS[name](), round(time.process_time() - started)
        known = json.loads(RATES.read_text()) if RATES.exists() else {}
        known[name] = {"seconds": seconds, "rows": rows}
        lines = (f'"{s}": {{"seconds": {known[s]["seconds"]}, "rows": [\n' + ",\n".join(map(json.dumps, known[s]["rows"]))
                 + "\n]}" for s in SECTIONS if s in known)  # fmt: skip
        RATES.write_text("{" + ",\n".join(lines) + "}\n")
        print(f"{name}: {seconds} s", flush=True)
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + render(json.loads(RATES.read_text())) + END + rest.partition(END)[2])


if __name__ == "__main__":
    main(sys.argv[1:])
