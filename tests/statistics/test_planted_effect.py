"""A planted effect is found and a null effect is not, from plan to verdict, with fake workers.

One lane adds 2 points to its runs, so the plan must counterbalance and the analysis adjust.
"""

import numpy as np
import pytest
from support.plans import fake_plans
from support.workers import fake_worker

from esper_ab.analysis.analyse import analyse
from esper_ab.contracts.settings import Arithmetic
from esper_ab.control import experiment_run
from esper_ab.journal.load import load
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.verdict.verdict import Verdict

DEVICE = 2.0  # points that lane 1 gives


@pytest.mark.parametrize("rng_seed", [1, 2])  # the differences of 0 happen to drift, which caps a verdict
@pytest.mark.parametrize(
    ("effect", "verdict"), [(7.0, Verdict.BETTER), (-7.0, Verdict.WORSE), (0.0, Verdict.INCONCLUSIVE)]
)
def test_the_verdict_and_estimate_match_the_planted_effect(tmp_path, monkeypatch, effect, verdict, rng_seed):
    rng = np.random.default_rng(rng_seed)
    shared_part, own_parts = rng.normal(69.4, 1.9, 10), rng.normal(0.0, 2.9, (2, 10))  # runs of a pair correlate by 0.3
    outcomes = shared_part + own_parts + [[effect], [0.0]]

    def accuracy(spec, episode, env):
        group = ("a", "b").index(spec.ref.group_id)
        return float(outcomes[group, spec.ref.replicate] + DEVICE * (spec.env_devices[env] == "cpu:1"))

    monkeypatch.setattr(fake_worker, "accuracy", accuracy)
    loose_arithmetic = Arithmetic(deterministic=False)  # so that device and start order could matter, as they do here
    plan = fake_plans.plan(seeds=10, episodes=1, steps=1, margin=2.0, arithmetic=loose_arithmetic)
    experiment_run.run(plan, tmp_path, InlineLauncher("support.workers.fake_worker:main_in_thread"), ())
    (comparison,) = analyse(load(tmp_path).history).comparisons
    assert comparison.verdict is verdict
    assert comparison.low < effect < comparison.high
    planted_difference = (outcomes[0] - outcomes[1]).mean()
    assert comparison.effect.mean == pytest.approx(planted_difference, abs=1e-6)  # the lane's bonus is removed
