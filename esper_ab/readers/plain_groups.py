"""Tables with a row per seed in which every other column is plainly the outcomes of one group. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import outcome_of
from esper_ab.formats.column_names import COLUMNS, PAIR_COLUMNS, meaning
from esper_ab.formats.source_table import Cells
from esper_ab.readers.metrics import are_numbers
from esper_ab.readers.steps import step_column

_MOST_GROUPS = 8
_APART = 4.0  # times the larger spread, between means of columns that may be outcomes of two groups
# Words in the names of measures, settings and statistics, of which a table may have a column each.
_MEASURES = frozenset(
    [
        "acc",
        "accuracy",
        "auc",
        "auroc",
        "average",
        "batch",
        "bleu",
        "cost",
        "count",
        "cpu",
        "dev",
        "dropout",
        "entropy",
        "episodes",
        "epochs",
        "err",
        "error",
        "f1",
        "gamma",
        "gpu",
        "grad",
        "kl",
        "lambda",
        "latency",
        "layers",
        "length",
        "loss",
        "lr",
        "mae",
        "max",
        "mean",
        "median",
        "memory",
        "min",
        "mse",
        "n",
        "nll",
        "norm",
        "ppl",
        "perplexity",
        "precision",
        "rank",
        "rate",
        "recall",
        "regret",
        "return",
        "returns",
        "reward",
        "rewards",
        "rmse",
        "rouge",
        "score",
        "scores",
        "sd",
        "size",
        "std",
        "step",
        "steps",
        "success",
        "temperature",
        "test",
        "time",
        "tokens",
        "top1",
        "top5",
        "train",
        "val",
        "valid",
        "validation",
        "value",
        "var",
        "variance",
        "wd",
        "width",
    ]
)


def plain_groups(columns: Mapping[str, Cells]) -> tuple[str, ...]:
    """Return the columns of groups if a table is plainly a column of seeds and a column per group; else ().

    Plainly: nothing but numbers, no column that is called like a measure, and outcomes of one scale.
    """
    pairs = [name for name in columns if meaning(name) in PAIR_COLUMNS]
    other_columns = [name for name in columns if name not in pairs]
    if len(pairs) != 1 or not 2 <= len(other_columns) <= _MOST_GROUPS:
        return ()
    if any(meaning(name) in COLUMNS or step_column([name]) or _is_measure(name) for name in other_columns):
        return ()
    if not all(are_numbers(columns[name]) for name in other_columns):
        return ()
    return tuple(other_columns) if _are_of_one_scale([columns[name] for name in other_columns]) else ()


def _is_measure(name: str) -> bool:
    words = re.findall(r"[a-z]+[0-9]*", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return not words or not _MEASURES.isdisjoint(words)


def _are_of_one_scale(columns: list[Cells]) -> bool:
    """True if the means of the columns differ by no more than a few times their spread or half of their size."""
    values = []
    for cells in columns:
        try:
            numbers = [value for cell in cells if (value := outcome_of(cell, "")) is not None]
        except UsageError:
            return False
        if not numbers:
            return False
        values.append(np.asarray(numbers))
    means = [float(group_values.mean()) for group_values in values]
    mean_range = max(means) - min(means)
    spread = max(float(group_values.std()) for group_values in values)
    return mean_range <= _APART * spread or 2 * mean_range <= max(map(abs, means))
