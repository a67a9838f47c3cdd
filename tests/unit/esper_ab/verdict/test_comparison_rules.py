"""Rules of verdicts that hold for all inputs."""

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.outcomes.compared_designs import (
    compared,
    design,
    exploded,
    lost,
    open_ended,
    pairs_of,
)

from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pair, Pairs
from esper_ab.verdict.question import HalfPair, Lost
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

outcomes = st.floats(40.0, 90.0).map(lambda x: round(x, 1))
rows = st.builds(
    lambda shift, items: [(x, round(x - shift - e, 1)) for x, e in items],
    st.sampled_from((-6.0, -1.0, 0.0, 0.5, 5.0)),
    st.lists(st.tuples(outcomes, st.integers(-30, 30).map(lambda tenths: tenths / 10.0)), min_size=1, max_size=10),
)
rules = st.builds(
    design,
    st.sampled_from((3, 6, 8, 10)),
    adjusted=st.booleans(),
    early_stop=st.booleans(),
    margin=st.sampled_from((1.0, 4.0, 20.0)),
)
MIRRORED = {
    Verdict.BETTER: Verdict.WORSE,
    Verdict.WORSE: Verdict.BETTER,
    Verdict.BETTER_BELOW_MARGIN: Verdict.WORSE_BELOW_MARGIN,
    Verdict.WORSE_BELOW_MARGIN: Verdict.BETTER_BELOW_MARGIN,
}


def swap(pair: Pair | HalfPair) -> Pair | HalfPair:
    return msgspec.structs.replace(
        pair,
        a=pair.b,
        b=pair.a,
        position_a=pair.position_b,
        position_b=pair.position_a,
        **({"failed_a": pair.failed_b, "failed_b": pair.failed_a} if isinstance(pair, HalfPair) else {}),
    )


@settings(max_examples=60)
@given(rows, st.one_of(rules, st.just(open_ended())), st.one_of(st.none(), outcomes))
def test_swapping_the_groups_mirrors_the_whole_comparison(outcome_pairs, rule, survivor):
    pairs = pairs_of(*zip(*outcome_pairs, strict=True))
    losses = lost() if survivor is None else lost((len(pairs), None, survivor))
    forward = compared(rule, pairs, lost=losses)
    mirrored_losses = Lost(replicates=tuple(map(swap, losses.replicates)))
    mirrored_result = compared(rule, Pairs.of(map(swap, pairs)), lost=mirrored_losses, a="simplified", b="shaped")
    assert mirrored_result.verdict is MIRRORED.get(forward.verdict, forward.verdict)
    assert mirrored_result.estimate == pytest.approx(-forward.estimate, abs=1e-9)
    assert (mirrored_result.low is None) == (forward.low is None)
    if forward.low is not None:
        assert (mirrored_result.low, mirrored_result.high) == pytest.approx(
            (-forward.high, -forward.low), rel=1e-9, abs=1e-9
        )
    assert forward.headline.count(". ") == 0  # one sentence
    assert str(forward.verdict) not in forward.headline
    if forward.verdict in DIFFERENT:
        words = {"shaped": "simplified", "simplified": "shaped", "better": "worse", "worse": "better"}
        assert re.sub("|".join(words), lambda match: words[match.group()], forward.headline) == mirrored_result.headline
    assert (mirrored_result.imputed is None) == (forward.imputed is None)
    if forward.imputed is not None:
        assert mirrored_result.imputed.survives == forward.imputed.survives
    if (iqm := forward.descriptive["iqm"]) is not None:
        mirrored_iqm = mirrored_result.descriptive["iqm"]
        assert (mirrored_iqm.low, mirrored_iqm.high) == pytest.approx((-iqm.high, -iqm.low), abs=1e-9)


@settings(max_examples=60)
@given(rows, rules, st.randoms(use_true_random=False))
def test_audit_findings_never_strengthen_a_verdict(outcome_pairs, rule, random):
    pair_list = list(pairs_of(*zip(*outcome_pairs, strict=True)))
    result = compared(rule, tuple(pair_list))
    random.shuffle(pair_list)
    assert compared(rule, tuple(pair_list)) == result
    if len(outcome_pairs) < LEAST_PAIRS:
        assert result.verdict not in CLAIMS
    if result.verdict in (Verdict.BETTER, Verdict.WORSE) and result.used == result.progress.decided_at:
        assert result.last_look.p <= result.last_look.bound_p
    text = " ".join((result.sentence, result.rule, str(result.level), *result.caveats)).lower()
    for word in ("winner", "none", "nan", "inf ", "  ", "..", "no interval,"):
        assert word not in text
    capped_result = compared(rule, tuple(pair_list), findings=(exploded("simplified"),))
    assert capped_result.unaudited is result.unaudited
    assert capped_result.verdict is (Verdict.INCONCLUSIVE if result.verdict in CLAIMS else result.verdict)
