"""PYTHONPATH=tests python -m simulation: all sections, or those named, into rates.json and docs/evidence/rates.md."""

import json
import sys
import time
from pathlib import Path

from simulation.cells import SECTIONS
from simulation.tables import render

RATES = Path(__file__).with_name("rates.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "rates.md"
BEGIN, END = "<!-- rates table -->", "<!-- /rates table -->"


def main(names: list[str]) -> None:
    """`tables` names no section: only the page is written."""
    for name in names or list(SECTIONS):
        if name == "tables":
            continue
        started = time.process_time()
        rows, seconds = SECTIONS[name](), round(time.process_time() - started)
        known = json.loads(RATES.read_text()) if RATES.exists() else {}
        known[name] = {"seconds": seconds, "rows": rows}
        parts = []
        for section in filter(known.__contains__, SECTIONS):
            lines = ",\n".join(map(json.dumps, known[section]["rows"]))
            parts.append(f'"{section}": {{"seconds": {known[section]["seconds"]}, "rows": [\n{lines}\n]}}')
        RATES.write_text("{" + ",\n".join(parts) + "}\n")
        sys.stdout.write(f"{name}: {seconds} s\n")
        sys.stdout.flush()
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise SystemExit(f"no {BEGIN} and {END} in {PAGE}")
    PAGE.write_text(f"{head}{BEGIN}\n{render(json.loads(RATES.read_text()))}\n{END}{tail}")


if __name__ == "__main__":
    main(sys.argv[1:])
