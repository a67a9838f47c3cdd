"""What grown parameters and seeds are worth: accuracy per parameter, and the share of seeds that is kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import RunOutcome


def gains_per_kparam(history: History, outcomes: Mapping[str, RunOutcome]) -> dict[str, float | None]:
    """Return by run the points above the never-grown host of its replicate, per 1,000 parameters added to a host.

    None without a group that waits, and where nothing was added.
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
    """Return the share of fossilised among fossilised and pruned seeds; None without any."""
    kept, pruned = one.measures["fossilized"], one.measures["pruned"]
    if kept is None or pruned is None or kept + pruned == 0:
        return None
    return kept / (kept + pruned)
