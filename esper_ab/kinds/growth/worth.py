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
    baselines = {}
    for name, run in history.runs.items():
        evaluated_outcome = outcomes[name].evaluated
        if run.spec.settings.controller.name == "wait" and evaluated_outcome is not None:
            baselines[run.ref.replicate] = evaluated_outcome
    gains = {}
    for name, outcome in outcomes.items():
        gains[name] = _gain(outcome, baselines.get(outcome.run.replicate))
    return gains


def _gain(outcome: RunOutcome, baseline: float | None) -> float | None:
    added_params = outcome.measures["params_added"]
    if outcome.evaluated is None or baseline is None or not added_params:
        return None
    return (outcome.evaluated - baseline) / (added_params / 1000)


def kept_share(outcome: RunOutcome) -> float | None:
    """Return the share of fossilised seeds among fossilised and pruned seeds; None if there are no such seeds."""
    kept_count = outcome.measures["fossilized"]
    pruned_count = outcome.measures["pruned"]
    if kept_count is None or pruned_count is None or kept_count + pruned_count == 0:
        return None
    return kept_count / (kept_count + pruned_count)
