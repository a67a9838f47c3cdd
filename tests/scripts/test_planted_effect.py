"""A planted effect is found, and none where there is none: planner, coordinator, journal and looks, with fake workers.

The outcomes are those of scripts/simulation: one lane gives 2 points more, runs of a pair correlate by 0.3, d = 1 is
3.5 points. `engine.check` raises where the engine decides otherwise than the simulated procedure, whose power
scripts/validate_statistics measures over 100,000 experiments: 0.62 at d = 1, more than 0.99 at d = 2.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from simulation import engine, laws

from esper_ab.analysis.analyse import analyse
from esper_ab.verdict.vocabulary import Verdict

RNG_SEED = 9


def counted(effect: float, experiments: int) -> Counter[str]:
    return sum((engine.check(effect, number, RNG_SEED) for number in range(experiments)), Counter())


@pytest.mark.parametrize("sign", [1, -1])
def test_a_large_effect_is_found_in_every_experiment(sign):
    assert counted(sign * 2 * laws.OUTCOME_SD, 8) == Counter(experiments=8, claims=8, wrong=0, missed=0)


def test_an_effect_of_one_sd_is_found_as_often_as_promised():
    found = counted(laws.OUTCOME_SD, 16)
    assert found["wrong"] == 0
    assert 6 <= found["claims"] <= 14  # of 16 at 0.62: 98 %


def test_no_effect_is_claimed_no_more_often_than_promised():
    found = counted(0.0, 16)
    assert found["wrong"] == found["missed"] <= 2  # of 16 at 0.05: 96 %


@pytest.mark.parametrize(
    ("effect", "verdict"), [(7.0, Verdict.BETTER), (-7.0, Verdict.WORSE), (0.0, Verdict.INCONCLUSIVE)]
)
def test_the_verdict(tmp_path, effect, verdict):
    outcomes = laws.outcomes(engine.LAW, engine.RHO, laws.Size(1, 10), np.random.default_rng(RNG_SEED))[0]
    outcomes[0] += effect
    (comparison,) = analyse(engine.conducted(outcomes, tmp_path)).comparisons
    assert comparison.verdict is verdict
    assert comparison.low < effect < comparison.high
    assert comparison.effect.mean == pytest.approx(effect, abs=2.5)
