"""scripts/validate_training: what it counts of made-up launches; it sees a procedure that is not calibrated."""

from __future__ import annotations

import numpy as np
import pytest
import validate_training as script
from validate_training import LEVELS, LONGEST, NOTHING, PARTS, PER_LAUNCH, RULES, Launch, Share, Truth


def launches(part: str, count: int, effect: float, sd: float = 10.0) -> list[Launch]:
    """Made-up launches whose pairs differ by `effect`, with an SD of `sd` of their differences."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(count):
        b = rng.normal(40.0, 5.0, PER_LAUNCH * LONGEST)
        a = b + rng.normal(effect, sd, b.size)
        found.append(Launch(part, PARTS[part].rng_seed + number, a.tolist(), b.tolist(), "a processor"))
    return found


def experiments(found: list[Launch]) -> list[script.Experiment]:
    return [experiment for one in found for experiment in one.experiments()]


def test_a_launch_is_cut_into_tens_in_order() -> None:
    one = Launch("same", 1, list(range(100)), list(range(100, 200)), "")
    first, second = one.experiments()[:2]
    assert first[0].tolist() == list(range(10))
    assert second[1].tolist() == list(range(110, 120))


def test_intervals_of_normal_differences_cover_as_promised() -> None:
    """With 600 experiments 99.9 % limits of every share hold its level."""
    own = experiments(launches("same", 60, effect=0.0))
    for rule in RULES:
        for level, share in zip(LEVELS, script.curve(rule.replicates, own, NOTHING), strict=True):
            low, high = share.limits(0.999)
            assert low <= level <= high


def test_intervals_about_a_wrong_truth_do_not() -> None:
    own = experiments(launches("treated", 20, effect=8.0))
    right, wrong = (script.curve(10, own, Truth(mean=mean, sd=10.0, pairs=200)) for mean in (8.0, 0.0))
    assert right[3].limits(0.999)[1] >= LEVELS[3]
    assert wrong[3].limits(0.999)[1] < LEVELS[3]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.replicates))
def test_claims_have_a_direction_and_the_power_of_the_plan(rule) -> None:
    truth = Truth(mean=10.0, sd=10.0, pairs=10**9)
    own = experiments(launches("treated", 40, effect=10.0))
    right, wrong = script.claims(rule, own, truth)
    low, high = right.limits(0.999)
    assert low <= script.expected_power(rule, truth) <= high
    assert wrong.count <= 2
    turned = script.claims(rule, own, Truth(mean=-10.0, sd=10.0, pairs=200))
    assert (turned[0], turned[1]) == (wrong, right)
    assert script.claims(rule, own, NOTHING) == (Share(0, 400), Share(right.count + wrong.count, 400))


def test_the_section_says_what_there_is_and_what_is_broken() -> None:
    text, broken = script.lines([*launches("same", 10, 0.0), *launches("known", 2, 8.0), *launches("treated", 5, 8.0)])
    assert not broken
    assert text.startswith("Done: 100 of 400 experiments on one group (`same`), 50 of 200 with a treatment")
    assert "200 other pairs" in text
    text, broken = script.lines(launches("same", 10, 8.0))
    assert "known" not in text
    assert any("false claims" in one for one in broken)
    assert any("95 % intervals" in one for one in broken)


def test_centred_pairs_err_as_often_as_alpha_where_they_are_normal_and_more_where_they_are_skewed() -> None:
    assert script.centred(launches("treated", 20, effect=8.0), 6) == pytest.approx(0.05, abs=0.005)
    skewed = launches("treated", 20, effect=0.0)
    for one in skewed:
        one.a[:] = (np.array(one.b) - np.random.default_rng(one.rng_seed).exponential(5.0, len(one.b))).tolist()
    assert script.centred(skewed, 6) > 0.08
