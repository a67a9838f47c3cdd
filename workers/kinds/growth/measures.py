"""The measures that growth tasks record for every host.

The outcome is measured on data hidden from policies and rewards.
"""

from __future__ import annotations

from esper_ab.contracts.measures import Measure, TaskMeasures
from workers.kinds.growth.vocabulary import Op


def _accuracy(name: str, label: str) -> Measure:
    return Measure(name=name, label=label, unit="%", difference_unit="points", better="higher", low=0.0, high=100.0)


def _count(name: str, label: str) -> Measure:
    return Measure(name=name, label=label, low=0.0)


MEASURES = TaskMeasures(
    outcome=_accuracy("held_out_accuracy", "held-out accuracy"),  # of the test split
    measures=(
        _accuracy("val_accuracy", "validation accuracy"),  # at the last step
        _accuracy("best_val_accuracy", "best validation accuracy"),  # of the episode
        Measure(name="val_loss", label="validation loss", unit="nats", better="lower", low=0.0),
        _count("host_params", "parameters of the host"),
        _count("params_added", "parameters added"),  # trainable ones of all modules and gates present at the end
        _count("germinated", "seed modules germinated"),
        _count("pruned", "seed modules pruned"),
        _count("fossilized", "seed modules fossilised"),
        _count("contributing", "contributing fossils"),  # of at least 1 point when fossilised
        *(_count(f"op_{op.name.lower()}", f"decisions {op.name}") for op in Op),  # executed ones
    ),
    margin=2.0,
)
