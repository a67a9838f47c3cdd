"""What parameters are worth needs the never-grown host; the share of kept seeds needs seeds."""

from __future__ import annotations

import pytest
from support.journals import planted_effect, three_groups, without_evaluations

from esper_ab.analysis.growth.worth import gains_per_kparam, kept_share
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes


def gains(events):
    history = fold(events)
    return gains_per_kparam(history, outcomes(history))


def test_gain_per_parameter_needs_the_never_grown_host() -> None:
    assert set(gains(planted_effect()).values()) == {None}
    found, gained = outcomes(fold(three_groups())), gains(three_groups())
    shaped, wait = found["shaped/2"], found["wait/2"]
    assert gained["shaped/2"] == pytest.approx(
        (shaped.evaluated - wait.evaluated) / (shaped.measures["params_added"] / 1000)
    )
    assert gained["wait/2"] is None


def test_the_kept_share_needs_seeds() -> None:
    found = outcomes(fold(three_groups()))
    kept, pruned = (found["shaped/2"].measures[name] for name in ("fossilized", "pruned"))
    assert kept_share(found["shaped/2"]) == pytest.approx(kept / (kept + pruned))
    assert kept_share(found["wait/2"]) is None
    assert kept_share(outcomes(fold(without_evaluations(three_groups())))["shaped/2"]) is None
