"""Which constants are listed: those on which a return depends, and those that a reward refuses."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats
from workers.reward_audit.constants import alternatives, varied


def returns_of(settings: RewardSettings) -> Floats:
    if settings.max_rent > 8:
        raise ValueError("too dear")
    switched = 1.0 if settings.disable_pbrs else 0.0
    return np.array([settings.rent_weight, float(settings.early_prune_threshold), switched])


def test_only_what_matters_is_listed_with_what_it_was() -> None:
    found = varied(RewardSettings(), returns_of)
    listed = [(one.constant, one.was, one.now, one.returns) for one in found]
    assert sorted(listed) == [
        ("disable_pbrs", "false", "true", (0.5, 5.0, 1.0)),
        ("early_prune_threshold", "5", "10", (0.5, 10.0, 0.0)),
        ("early_prune_threshold", "5", "2", (0.5, 2.0, 0.0)),
        ("max_rent", "8", "16", ()),
        ("rent_weight", "0.5", "0.25", (0.25, 5.0, 0.0)),
        ("rent_weight", "0.5", "1", (1.0, 5.0, 0.0)),
    ]


def test_every_constant_but_the_mode_is_tried_once_per_value_and_alone() -> None:
    settings = RewardSettings()
    seen = set()
    for name, value, changed in alternatives(settings):
        altered = [field for field in settings.__struct_fields__ if getattr(changed, field) != getattr(settings, field)]
        assert altered == [name]
        assert getattr(changed, name) == value
        assert (name, value) not in seen
        seen.add((name, value))
    assert set(settings.__struct_fields__) - {name for name, _ in seen} == {"mode", "params", "family", "gamma"}
