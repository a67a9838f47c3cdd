"""Tables of scores on items, as columns, with a difference between two groups."""

import numpy as np


def item_columns(
    *,
    runs=6,
    items=60,
    shift=0.0,
    run_sd=0.0,
    repeats=1,
    graded=False,
    run_column="seed",
    seed=1,
    groups=("new", "old"),
):
    """Return columns for all groups x runs x items x repeats, with scores of 0/1, or normal ones if `graded`.

    Normal scores have an SD of 1. The chances, or means, of the first group are `shift` above the others. `run_column`:
    the name of the column of runs; if it is "", each group is one run.
    """
    rng = np.random.default_rng(seed)
    difficulty = rng.beta(1.2, 1.2, items)
    columns = {"group": [], run_column: [], "question": [], "epoch": [], "outcome": []}
    for group in groups:
        for run in range(runs):
            item_levels = difficulty + shift * (group == groups[0]) + rng.normal(0.0, run_sd)
            for item in range(items):
                for repeat in range(repeats):
                    score = item_levels[item] + rng.normal() if graded else float(rng.random() < item_levels[item])
                    for name, value in zip(columns, (group, run, item, repeat, score), strict=True):
                        columns[name].append(value)
    if repeats == 1:
        del columns["epoch"]
    columns.pop("", None)
    return columns


def without(columns, is_unwanted):
    """Return the columns without the rows for which `is_unwanted` (a function of a row by column name) is true."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    kept_rows = [row for row in rows if not is_unwanted(row)]
    return {name: [row[name] for row in kept_rows] for name in columns}


def replaced(columns, name, value_of_row):
    """Return the columns with new values of column `name`; `value_of_row`: a function of a row by column name."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return {**columns, name: [value_of_row(row) for row in rows]}
