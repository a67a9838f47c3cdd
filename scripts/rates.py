"""Simulate how often verdicts on pairs are wrong, and write the tables of docs/evidence/rates.md.

    scripts/rates    (three minutes)

The rules are those of tests/simulation, in which nothing comes from `esper_ab`; rates_of_plans.py and
rates_of_failures.py have what is simulated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import rates_of_failures as failures  # noqa: E402
import rates_of_plans as plans  # noqa: E402
from page_tables import Rows, replace_tables  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "rates.md"
TABLES: dict[str, Callable[[], Rows]] = {
    "one shape": plans.one_shape,
    "no maximum": plans.no_maximum,
    "endings": plans.endings,
    "several tasks": plans.several_tasks,
    "tuned": plans.tuned,
    "other rules": plans.other_rules,
    "two values": partial(plans.two_values, range(6, 21), (1, 2, 3)),
    "two values, more pairs": partial(plans.two_values, range(21, 41), (1,)),
    "rare collapses": failures.rare_collapses,
    "lost runs": failures.lost_runs,
    "small with losses": failures.small_with_losses,
    "price of losses": failures.price_of_losses,
    "drift": failures.drift,
    "zero or one": failures.zero_or_one,
}

if __name__ == "__main__":
    replace_tables(PAGE, TABLES)
