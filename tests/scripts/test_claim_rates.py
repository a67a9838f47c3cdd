"""The rule that scripts/claim_rates writes anew decides random tables as the package does."""

import claim_rates
import numpy as np
import pytest
from simulation import laws

from esper_ab.api.external import design_comparison, judge_outcomes

MEANS = (-1.5, -1.0, -0.5, 0.0, 0.6)  # of the groups against the control, in margins


def drawn(number):
    """Return looks, and outcomes [groups, pairs] of which the last group is the control."""
    rng = np.random.default_rng([3, number])
    looks = list(claim_rates.LOOKS.values())[number % len(claim_rates.LOOKS)]
    groups = (2, 3, 6)[number // 4 % 3]
    law = list(laws.SHAPES)[number % len(laws.SHAPES)]
    x = laws.runs(law, laws.latent(rng, (1, groups, looks[-1]), 0.5))[0] * rng.choice([0.3, 1.0, 2.0])
    x[:-1] += rng.choice(MEANS, groups - 1)[:, None]
    return looks, x


def verdicts_by_script(looks, x):
    ends = claim_rates.judge((x[:-1] - x[-1])[None], looks, 1.0, claims_not_worse=True)
    words = {1: "BETTER", -1: "WORSE"}
    names = []
    for crossed, not_worse in zip(ends.crossed[0], ends.not_worse[0], strict=True):
        names.append(words.get(int(crossed), "NOT WORSE" if not_worse else "INCONCLUSIVE"))
    return names


def verdicts_by_package(looks, x):
    names = [*(f"g{place}" for place in range(len(x) - 1)), "control"]
    plan = design_comparison(
        names, looks[-1], margin=1.0, better="higher", control="control", looks=looks, claim="not-worse"
    )
    table = {
        "group": np.repeat(names, looks[-1]),
        "seed": np.tile(np.arange(looks[-1]), len(names)),
        "order": np.tile(np.arange(looks[-1]), len(names)),
        "outcome": x.ravel(),
    }
    answer = judge_outcomes(plan, table)
    return answer.comparisons


@pytest.mark.parametrize("number", range(24))
def test_the_script_and_the_package_agree_on_a_random_table(number, monkeypatch):
    """BETTER and WORSE may differ by the sign-flip test, and a claim may be capped by a drift."""
    monkeypatch.setattr(claim_rates, "PATHS", 300_000)
    looks, x = drawn(number)
    comparisons = verdicts_by_package(looks, x)
    for word, comparison in zip(verdicts_by_script(looks, x), comparisons, strict=True):
        if comparison.capped_by or comparison.lacking_signs:
            continue
        assert str(comparison.verdict).removesuffix(", BELOW MARGIN") == word
