"""rates.json as the tables of docs/evidence/rates.md."""

from collections.abc import Sequence
from typing import Any

from simulation.cells import MARGIN, RARE, SYMMETRIC, UNEQUAL_PLANS, WELCH_SIZES, Rows

Rates = dict[str, Any]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join('–' if cell is None else str(cell) for cell in line)} |" for line in lines)


def _by(rows: Rows, *keys: str) -> str:
    return _table(keys, [[row[key] for key in keys] for row in rows])


def _one_shape(rows: Rows) -> str:
    parts = {"two groups": lambda p: p.endswith(" pairs"), "3 to 12 groups": lambda p: "," in p and "anytime" not in p,
             "anytime": lambda p: "anytime" in p}  # fmt: skip
    lines = []
    for law in dict.fromkeys(row["law"] for row in rows):
        of = [row for row in rows if row["law"] == law]
        worst = [max(row["false"] for row in of if chosen(row["plan"])) for chosen in parts.values()]
        lines.append([law, *worst, max(row["gate"] for row in of), min(row["at once"] for row in of)])
    return _table(["law of all groups", *parts, "gate", "at once"], lines)


def _unequal(rows: Rows) -> str:
    lines = [[row["law"], *(row[plan] for plan in UNEQUAL_PLANS), *(row[f"said, {e}"] for e in (0, 1, -1))]
             for row in rows]  # fmt: skip
    return _table(["laws", *UNEQUAL_PLANS, "said, false", "better", "worse"], lines)


def _welch(rows: Rows) -> str:
    sizes = [f"{a}, {b}" for a, b in WELCH_SIZES]
    lines = [[row["law"], *(f"{row[s][0]:.1f} ({row[s][1]:.1f})" for s in sizes)] for row in rows]
    return _table(["laws", *sizes], lines)


def _counts(rows: Rows, by: Sequence[str]) -> str:
    smalls = {words: [f"small, {words}, {m:g}" for m in (0.1, 0.2)] for words in ("one-sided", "as printed")}
    head = [*by, "false claim", "coverage, mean", "least", "EQUIVALENT", "at twice the bound"]
    return _table(head, [
        [*(row[key] for key in by), row["false"], row["coverage"], row["least"],
         *(max(row[key] or 0 for key in smalls[words]) for words in ("as printed", "one-sided"))] for row in rows
    ])  # fmt: skip


def render(rates: Rates) -> str:
    """All tables, with a sentence or two about each."""
    of = {name: section["rows"] for name, section in rates.items()}
    rare = [f"{chance * 100:g} % x {depth}" for chance, depth in RARE]
    seconds = sum(section["seconds"] for section in rates.values())
    lossy = [row for row in of["lost runs"] if row["claim"] == "BETTER"]
    small = [row for row in of["lost runs"] if row["claim"] != "BETTER"]
    return f"""\
`PYTHONPATH=tests python -m simulation` repeats the rules on simulated runs, in code of its own, and writes these tables
and `tests/simulation/rates.json` ({seconds / 60:.0f} minutes on one core). Rates are in percent. The margin is
{MARGIN:g}, an open-ended plan ("anytime") is followed to 40 pairs, and looks are the default ones.

**Groups of one shape**: any false claim of any comparison, that is a difference that is not there, a wrong sign, or a
difference of the margin or more called small. The worst of correlations -0.5, 0, 0.5 and 0.9 within pairs, of no
difference, one group a margin up, and groups 0, 1 and 2 margins up in turn, and of the plans: two groups with 6, 10,
16, 20 and 30 pairs; all pairs of 3 (6, 10, 20 seeds), 4 (30), 6 and 12 (20); 2 (10), 5 and 11 (20) against a
control; anytime with 2 and 3 groups. 5,000 to 30,000 experiments a cell, and five times as many, anew, where a rate is
two standard errors above 5. "Gate": `not-worse-than` holds for a group that is a margin worse. "At once": all
simultaneous intervals hold.

{_one_shape(of["one shape"])}

**Groups of unequal shape**, all means equal: false claims. The last group, or the control, has the law after the
semicolon, all others the one before it; "15 % x 20" means that 15 % of their runs fall by 20. No test of a mean keeps
5 % here. The last columns: at 20 pairs, how often the sentence about the shapes stands beside a false claim, and beside
a true one where the first group is one SD better, or worse.

{_unequal(of["unequal shapes"])}

**EQUIVALENT where one group is worse by more than the margin, all of it in rare collapses** (SD 1, correlation 0.9), by
the first look that may say EQUIVALENT. The gate `not-worse-than` errs at most one point more often.

{_by(of["rare collapses"], "plan", "from", *rare)}

**What waiting costs**: pairs at which an open-ended plan ends where nothing differs, median (80 % quantile), by the SD
of a difference in margins.

{_by(of["no difference"], "from", "0.5", "1", "1.5", "2")}

**Lost runs**: false BETTER for a group that lost a run before the last look, by the observed pairs, and as it is said
with a declared worst. Means with the lost runs are equal; A's collapses crash instead of being recorded, or runs are
lost as named.

{_by(lossy, "law", "pairs", "observed", "said")}

False EQUIVALENT, and the gate "A not-worse-than B", in experiments that lost a run (SD 1, correlation 0.9):

{_table(["law", "EQUIVALENT, observed", "said", "gate, observed", "said"],
        [[row["law"], row["observed"], row["said"], row["gate, observed"], row["gate, said"]] for row in small])}

The price: BETTER at an effect of 4 SD of a run with 20 pairs, where each run is lost at random with the chance named,
by the declared worst (in SD below the mean).

{_by(of["price of losses"], "lost", "looks", "observed", "none", "-5", "-10", "-20", "-40")}

**Looks**: power at a difference of one SD of a run, and mean pairs, by the correlation within pairs.

{_by(of["price of looks"], "looks", "power, 0", "pairs, 0", "power, 0.5", "pairs, 0.5")}

**Outcomes 0 or 1**, exact rates over all chances from 0.05 to 0.95, one look. False claims are of the worst equal
chances; the mean and the least coverage of the printed interval; EQUIVALENT at the worst true difference of the margin,
0.1 or 0.2, by the printed interval, as the rule has it, and if that at twice its bound sufficed. Pairs:

{_counts(of["paired counts"], ("n", "correlation"))}

Through looks the worst false claims are
{", ".join(f"{row['false']} ({row['looks'].split(', ')[-1]} pairs)" for row in of["counts at looks"])}. Unpaired:

{_counts(of["unpaired counts"], ("runs",))}

**Welch's t**: false claims by the numbers of runs, with equal SDs, and in brackets with the worst SD ratio from 1/4 to
4. The first {len(SYMMETRIC)} laws are symmetric.

{_welch(of["unpaired"])}

**Drift**: each group is a series over seeds. False claims, those that the cap leaves, and how often it caps.

{_by(of["drift"], "series", "looks", "false", "with the cap", "capped")}"""
