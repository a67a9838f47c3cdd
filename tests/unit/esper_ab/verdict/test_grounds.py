"""The choice of a verdict from its grounds."""

from __future__ import annotations

import msgspec
import pytest

from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.grounds import Grounds, decide, decide_unaudited
from esper_ab.verdict.verdict import Verdict

OPEN = Grounds(pairs=20, identical=False, standing="open", direction=0.0, small=False)

# Each step changes the grounds further and names the verdict that then applies.
STEPS = [
    (Verdict.INCONCLUSIVE, {}),
    (Verdict.EQUIVALENT, {"standing": "equivalent"}),
    (Verdict.NOT_WORSE, {"standing": "not-worse"}),
    (Verdict.WORSE, {"standing": "crossed", "direction": -1.0}),
    (Verdict.BETTER, {"direction": 1.0}),
    (Verdict.WORSE_BELOW_MARGIN, {"direction": -1.0, "small": True}),
    (Verdict.BETTER_BELOW_MARGIN, {"direction": 1.0}),
    (Verdict.IDENTICAL, {"identical": True}),
    (Verdict.NO_INFERENCE, {"pairs": LEAST_PAIRS - 1, "capped": True}),
    (Verdict.BLOCKED, {"blocked": True}),
]


def test_the_first_applicable_verdict_is_chosen() -> None:
    assert [verdict for verdict, _ in reversed(STEPS)] == list(Verdict)
    grounds = OPEN
    for verdict, changes in STEPS:
        grounds = msgspec.structs.replace(grounds, **changes)
        assert decide(grounds) is verdict


@pytest.mark.parametrize("changes", [changes for _, changes in STEPS[:8]])
def test_a_capped_comparison_is_always_inconclusive(changes: dict[str, object]) -> None:
    capped_facts = msgspec.structs.replace(OPEN, capped=True, **changes)
    assert decide(capped_facts) is Verdict.INCONCLUSIVE
    assert decide_unaudited(capped_facts) is decide(msgspec.structs.replace(capped_facts, capped=False))


def test_with_few_pairs_only_the_verdict_identical_is_possible() -> None:
    facts_of_few_pairs = msgspec.structs.replace(OPEN, pairs=LEAST_PAIRS - 1)
    identical_facts = msgspec.structs.replace(facts_of_few_pairs, identical=True)
    assert decide(facts_of_few_pairs) is Verdict.NO_INFERENCE
    assert decide(identical_facts) is Verdict.IDENTICAL
    assert decide(msgspec.structs.replace(identical_facts, capped=True)) is Verdict.NO_INFERENCE
