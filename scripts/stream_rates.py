"""Simulate streams of 200 candidates (scripts/stream_simulation.py), and write the tables of docs/evidence/streams.md.

scripts/stream_rates
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from page_tables import replace_tables  # noqa: E402
from stream_simulation import (  # noqa: E402
    CANDIDATES,
    LAWS,
    REAL,
    Floats,
    Loop,
    World,
    anytime,
    betting,
    bonferroni,
    e_lond,
    e_lord,
    each_at_alpha,
    mean_alone,
    occasionally_failing,
    rarely_failing,
    simulate,
    spending,
    staged,
    steady,
    t_alone,
)

from esper_ab.stats.online_fdr import SPREAD  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "streams.md"
STREAM = Loop(levels=e_lond(SPREAD), test=staged)


def percent(values: Floats) -> str:
    return f"{100.0 * float(np.mean(values)):.1f}"


def row_of(name: str, loop: Loop, world: World) -> list[str]:
    ended = simulate(loop, world)
    error = ended.error
    return [
        name,
        percent(ended.false_share),
        f"{ended.true.mean():.1f}",
        f"{ended.false.mean():.2f}",
        f"{ended.runs.mean() / CANDIDATES:.1f}",
        f"{ended.value.mean():.1f}",
        f"{(ended.claimed - ended.value).mean():+.2f}",
        f"{error.mean():+.2f}",
        percent(np.abs(error) <= 1.0),
    ]


COLUMNS = [
    "loop",
    "false share, %",
    "real, kept",
    "not real, kept",
    "runs per candidate",
    "true gain, SDs",
    "claimed - true, SDs",
    "in SEs",
    "within one SE, %",
]


PAIRS_AT_EQUAL_COST = 6  # 12 runs per candidate
LOOPS = {
    "keep if higher, one run": Loop(levels=each_at_alpha, test=mean_alone, looks=(1,), fresh=False),
    "keep if higher, 12 runs on the same seeds": Loop(levels=each_at_alpha, test=mean_alone, looks=(12,), fresh=False),
    "t at 5 %, 12 runs on the same seeds": Loop(levels=each_at_alpha, test=t_alone, looks=(12,), fresh=False),
    "t at 5 %, 6 fresh pairs": Loop(levels=each_at_alpha, test=t_alone, looks=(PAIRS_AT_EQUAL_COST,)),
    "t at 5 % / 200, 6 fresh pairs": Loop(levels=bonferroni, test=t_alone, looks=(PAIRS_AT_EQUAL_COST,)),
    "**`esper-ab stream`**": STREAM,
}


def loops_table() -> Iterator[list[str]]:
    yield COLUMNS
    for name, loop in LOOPS.items():
        yield row_of(name, loop, World())


PROCEDURES = {
    "**LOND, staged t and signs**": STREAM,
    "LOND, anytime-valid t (e-LOND)": replace(STREAM, test=anytime),
    "LOND, betting (e-LOND)": replace(STREAM, test=betting),
    "alpha spending (FWER), staged t and signs": replace(STREAM, levels=spending(SPREAD)),
    "alpha spending (FWER), anytime-valid t": replace(STREAM, levels=spending(SPREAD), test=anytime),
    "LORD, 1 % of the rest, staged t and signs": replace(STREAM, levels=e_lord(0.01)),
    "LORD, 2 % of the rest, staged t and signs": replace(STREAM, levels=e_lord(0.02)),
}
EFFECTS = (1.0, 1.5, 2.0)


def procedures_table() -> Iterator[list[str]]:
    words = [f"{what} at {effect:g} SD" for effect in EFFECTS for what in ("false share, %", "real found, %", "runs")]
    yield ["procedure", "false share if nothing is real, %", *words]
    for name, loop in PROCEDURES.items():
        nothing = simulate(loop, World(real=0.0, harmful=0.0))
        cells = []
        for effect in EFFECTS:
            ended = simulate(loop, World(effect=effect))
            found = ended.true.sum() / ended.ideas.sum()
            cells += [percent(ended.false_share), percent(found), f"{ended.runs.mean() / CANDIDATES:.1f}"]
        yield [name, percent(nothing.false_share), *cells]


def weights_table() -> Iterator[list[str]]:
    yield ["spread of the weights", *(f"real found, %, of {count} candidates" for count in (20, 50, CANDIDATES))]
    for spread in (5, 20, 50, 100, 200):
        shares = []
        for count in (20, 50, CANDIDATES):
            ended = simulate(replace(STREAM, levels=e_lond(spread)), World(effect=1.25), candidates=count)
            shares.append(percent(ended.true.sum() / ended.ideas.sum()))
        yield [f"**{spread}**" if spread == SPREAD else str(spread), *shares]


def laws_table() -> Iterator[list[str]]:
    yield ["outcomes", "nothing is real: false share, %", *COLUMNS[1:5], *COLUMNS[6:]]
    for name, law in LAWS.items():
        nothing = simulate(STREAM, World(real=0.0, harmful=0.0, law=law))
        row = row_of(name, STREAM, World(law=law))
        yield [name, percent(nothing.false_share), *row[1:5], *row[6:]]


WORLDS = {
    "1 in 20 fails by 3 SDs; normal": World(real=0.0, harmful=0.0, candidate_law=occasionally_failing),
    "1 in 20 fails, else steady; steady": World(
        real=0.0, harmful=0.0, law=steady, candidate_law=rarely_failing, adaptive=False
    ),
}


def shapes_table() -> Iterator[list[str]]:
    """Candidates that fail rarely, against incumbents that do not, with equal means."""
    yield [
        "loop",
        *(f"{name}: not real, kept" for name in WORLDS),
        "equal shapes: real found, % at 1.5 SD",
        "runs per candidate",
    ]
    any_shape = replace(STREAM, test=betting, looks=(4, 24, 42, 60))
    for name, loop in {"`shape = 'same'`, 20 seeds": STREAM, "`shape = 'any'`, 60 seeds": any_shape}.items():
        false_counts = [f"{simulate(loop, world).false.mean():.2f}" for world in WORLDS.values()]
        ended = simulate(loop, World())
        found = percent(ended.true.sum() / ended.ideas.sum())
        yield [name, *false_counts, found, f"{ended.runs.mean() / CANDIDATES:.1f}"]


def reuse_table() -> Iterator[list[str]]:
    """What it costs in errors to train the incumbent once, and to use its runs for every candidate."""
    yield ["incumbent", "real", "false share, %", "not real, kept", "runs per candidate"]
    loops = {"trained anew for every candidate": STREAM, "trained once": replace(STREAM, kept_incumbent=True)}
    for name, loop in loops.items():
        for real in (0.0, REAL):
            ended = simulate(loop, World(real=real, harmful=0.0 if real == 0.0 else 0.5))
            yield [
                name,
                f"{100 * real:g} %",
                percent(ended.false_share),
                f"{ended.false.mean():.2f}",
                f"{ended.runs.mean() / CANDIDATES:.1f}",
            ]


def main() -> None:
    """Replace the tables between the page's markers."""
    tables = {
        "loops": loops_table,
        "procedures": procedures_table,
        "weights": weights_table,
        "laws": laws_table,
        "shapes": shapes_table,
        "reuse": reuse_table,
    }
    replace_tables(PAGE, tables)


if __name__ == "__main__":
    main()
