"""Findings of a reward audit: curves use only random schedules, other findings use all behaviours."""

import pytest
from support.rewards.audited_rewards import make_reward_audit, make_scored

from esper_ab.analysis.reward_audit import findings_of
from esper_ab.contracts.reward_audit import Varied

OUTCOMES = [90.0, 10.0, 20.0, 50.0, 40.0, 30.0]  # two reference behaviours first


def test_best_of_n_uses_only_random_schedules() -> None:
    """We chose the reference behaviours, so they are not a sample and belong to no curve."""
    findings = findings_of(
        make_reward_audit(OUTCOMES, {"honest": OUTCOMES, "opposite": [-value for value in OUTCOMES]})
    )
    honest_reward, opposite_reward = findings.rewards
    assert findings.own_curve[-1] == 50
    assert findings.own_curve[0] == pytest.approx(35)
    assert (honest_reward.favourite, honest_reward.regret, honest_reward.pairs) == (0, 0, ())
    assert honest_reward.curve.tolist() == findings.own_curve.tolist()
    assert honest_reward.distance == pytest.approx(0, abs=1e-6)
    assert (opposite_reward.favourite, opposite_reward.regret) == (1, 80)
    assert opposite_reward.curve[-1] == 20
    assert [honest_reward.rank_correlation, opposite_reward.rank_correlation] == [1, -1]
    assert (opposite_reward.pairs[0].preferred, opposite_reward.pairs[0].better, opposite_reward.pairs[0].loss) == (
        1,
        0,
        80,
    )
    assert findings.shown_n == (1, 4)


def test_the_share_of_a_reward_paid_at_each_step_is_measured_by_magnitude() -> None:
    early_reward, late_reward, never_paid_reward = (
        make_scored(name, OUTCOMES, by_step=by_step)
        for name, by_step in (("early", (3, 1, 0, 0)), ("late", (0, 0, 0, 2)), ("never", (0, 0, 0, 0)))
    )
    rewards = findings_of(make_reward_audit(OUTCOMES, [early_reward, late_reward, never_paid_reward])).rewards
    assert [reward.half_paid for reward in rewards] == [1, 4, None]
    assert [reward.on_last_step for reward in rewards] == [0, 1, None]
    assert rewards[0].paid.tolist() == [0.75, 1, 1, 1]


def test_reward_constants_are_sorted_by_their_effect() -> None:
    def make_varied(constant: str, returns: list[float]) -> Varied:
        return Varied(constant=constant, was="1", now="2", returns=tuple(returns))

    scored_reward = make_scored(
        "honest",
        OUTCOMES,
        varied_constants=(
            make_varied("scale", [2 * value for value in OUTCOMES]),
            make_varied("sign", [-value for value in OUTCOMES]),
            make_varied("refused", []),
        ),
    )
    sensitivity = findings_of(make_reward_audit(OUTCOMES, [scored_reward])).rewards[0].sensitivity
    assert [entry.varied.constant for entry in sensitivity] == ["sign", "refused", "scale"]
    sign, refused_constant, scale = sensitivity
    assert (sign.favourite_change, sign.order) == (-30, pytest.approx(-1))
    assert (refused_constant.favourite_change, refused_constant.order) == (None, None)
    assert (scale.favourite_change, scale.order) == (0, pytest.approx(1))


def test_a_reward_audit_of_one_random_schedule_has_findings() -> None:
    findings = findings_of(make_reward_audit([1.0, 2.0, 3.0], {"any": [1.0, 1.0, 1.0]}))
    assert findings.own_curve.tolist() == [3]
    assert findings.rewards[0].spread == 0
    assert findings.rewards[0].rank_correlation is None
