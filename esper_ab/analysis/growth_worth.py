"""What grown parameters and seeds are worth: accuracy per parameter, and the share of seeds that is kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome


def gains_per_kparam(history: History, outcomes: Mapping[str, RunOutcome]) -> dict[str, float | None]:
    """Return each run's gain over its baseline, in points per 1,000 parameters that were added to a host.

    The baseline is the run of the same replicate whose controller is "wait": its hosts never grow. The gain is None if
    there is no baseline, if either run has no outcome, or if no parameters were added.
    """
    baselines = {
        run.ref.replicate: outcomes[name].evaluated
        for name, run in history.runs.items()
        if run.spec.settings.controller.name == "wait" and outcomes[name].evaluated is not None
    }
    return {name: _gain(one, baselines.get(one.run.replicate)) for name, one in outcomes.items()}


def _gain(one: RunOutcome, baseline: float | None) -> float | None:
    added = one.measures["params_added"]
    if one.evaluated is None or baseline is None or not added:
        return None
    return (one.evaluated - baseline) / (added / 1000)


def kept_share(one: RunOutcome) -> float | None:
    """Return the share of fossilised seeds among fossilised and pruned seeds; None if there are no such seeds."""
    kept = one.measures["fossilized"]
    pruned = one.measures["pruned"]
    if kept is None or pruned is None or kept + pruned == 0:
        return None
    return kept / (kept + pruned)
