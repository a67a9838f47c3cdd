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
    """Columns of all groups x runs x items x repeats; scores are 0/1, or normal with SD 1 if `graded`.

    The first group's chances, or means, are `shift` above those of the others. `run_column`: ""; each group is one run.
    """
    rng = np.random.default_rng(seed)
    difficulty = rng.beta(1.2, 1.2, items)
    columns = {"group": [], run_column: [], "question": [], "epoch": [], "outcome": []}
    for group in groups:
        for run in range(runs):
            moved = difficulty + shift * (group == groups[0]) + rng.normal(0.0, run_sd)
            for item in range(items):
                for repeat in range(repeats):
                    score = moved[item] + rng.normal() if graded else float(rng.random() < moved[item])
                    for name, value in zip(columns, (group, run, item, repeat, score), strict=True):
                        columns[name].append(value)
    if repeats == 1:
        del columns["epoch"]
    columns.pop("", None)
    return columns


def without(columns, unwanted):
    """The columns without the rows for which `unwanted` (a function of a row by column name) is true."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    kept = [row for row in rows if not unwanted(row)]
    return {name: [row[name] for row in kept] for name in columns}


def replaced(columns, name, of_row):
    """The columns with other values of column `name`; `of_row`: a function of a row by column name."""
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return {**columns, name: [of_row(row) for row in rows]}
