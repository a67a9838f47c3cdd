"""Synthetic experiments of one question, on different rng seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from esper_ab.journal.events import AnyEvent, ExperimentEnded, LookTaken, RunStarted
from esper_ab.journal.fold import History, fold
from esper_ab.plan.plan import EarlierExperiment
from support.journals.synthetic import Shape, Synthetic

APART = {"shaped": Shape(accuracy=74.0), "simplified": Shape(accuracy=69.0, mode="simplified", params=500)}
ALIKE = {"shaped": Shape(accuracy=70.0), "simplified": Shape(accuracy=70.0, mode="simplified", params=500)}
SWAPPED = {"shaped": Shape(accuracy=69.0), "simplified": Shape(accuracy=74.0, mode="simplified", params=500)}


def experiment(rng_seed: int, earlier: Sequence[int] = (), **changes: Any) -> Synthetic:
    """Return an experiment whose plan's digest tells its rng seed; `earlier`: rng seeds of those that it replicates."""
    pooled_with = tuple(
        EarlierExperiment(name=f"seed{other}", digest=digest_of(other), rng_seed=other) for other in earlier
    )
    return replace(Synthetic(), rng_seed=rng_seed, digest=digest_of(rng_seed), pooled_with=pooled_with, **changes)


def digest_of(rng_seed: int) -> str:
    return hashlib.sha256(str(rng_seed).encode()).hexdigest()


def source(synthetic: Synthetic) -> tuple[str, History]:
    """Return the experiment under the name seed11 for the rng seed 11."""
    return f"seed{synthetic.rng_seed}", fold(synthetic.events())


def stopped_early(synthetic: Synthetic, look: int) -> list[AnyEvent]:
    """Return the journal of an experiment that ended at an interim look, which had decided."""
    events: list[AnyEvent] = []
    for event in synthetic.events():
        if isinstance(event, RunStarted) and event.run.replicate >= look:
            break
        events.append(event)
    decided = synthetic.plan().design.comparisons
    leaving = tuple(synthetic.groups)
    return [
        *events,
        LookTaken(replicates=look, decided=decided, leaving=leaving),
        ExperimentEnded(status="finished", detail=""),
    ]
