"""Simulate how often verdicts on unpaired runs are wrong, and write two sections of docs/evidence/rates.md.

    scripts/unpaired_rates    (two minutes)

rates_of_welch.py and rates_of_unpaired_counts.py have what is computed; nothing of it comes from `esper_ab`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import rates_of_unpaired_counts as counts  # noqa: E402
import rates_of_welch as welch  # noqa: E402
from page_tables import Rows, replace_tables  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "rates.md"
TABLES: dict[str, Callable[[], Rows]] = {
    "welch": welch.false_claims,
    "power of welch": welch.power,
    "runs needed": counts.needed,
    "unpaired counts": counts.errors_and_power,
    "called small": counts.called_small,
}

if __name__ == "__main__":
    replace_tables(PAGE, TABLES)
