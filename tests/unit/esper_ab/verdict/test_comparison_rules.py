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
from esper_ab.stats.pair import Pair
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


def swapped(pair: Pair | HalfPair) -> Pair | HalfPair:
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
def test_swapping_the_groups_flips_every_sign_every_verdict_and_the_words(found, rule, survivor):
    pairs = pairs_of(*zip(*found, strict=True))
    gone = lost() if survivor is None else lost((len(pairs), None, survivor))
    there = compared(rule, pairs, lost=gone)
    turned_losses = Lost(replicates=tuple(map(swapped, gone.replicates)))
    back = compared(rule, tuple(map(swapped, pairs)), lost=turned_losses, a="simplified", b="shaped")
    assert back.verdict is MIRRORED.get(there.verdict, there.verdict)
    assert back.estimate == pytest.approx(-there.estimate, abs=1e-9)
    assert (back.low is None) == (there.low is None)
    if there.low is not None:
        assert (back.low, back.high) == pytest.approx((-there.high, -there.low), rel=1e-9, abs=1e-9)
    assert there.headline.count(". ") == 0  # one sentence
    assert str(there.verdict) not in there.headline
    if there.verdict in DIFFERENT:
        words = {"shaped": "simplified", "simplified": "shaped", "better": "worse", "worse": "better"}
        assert re.sub("|".join(words), lambda found: words[found.group()], there.headline) == back.headline
    assert (back.imputed is None) == (there.imputed is None)
    if there.imputed is not None:
        assert back.imputed.survives == there.imputed.survives
    if (iqm := there.descriptive["iqm"]) is not None:
        turned = back.descriptive["iqm"]
        assert (turned.low, turned.high) == pytest.approx((-iqm.high, -iqm.low), abs=1e-9)


@settings(max_examples=60)
@given(rows, rules, st.randoms(use_true_random=False))
def test_order_never_matters_no_claim_below_six_pairs_and_an_audit_never_makes_a_verdict_stronger(found, rule, random):
    listed = list(pairs_of(*zip(*found, strict=True)))
    result = compared(rule, tuple(listed))
    random.shuffle(listed)
    assert compared(rule, tuple(listed)) == result
    if len(found) < LEAST_PAIRS:
        assert result.verdict not in CLAIMS
    if result.verdict in (Verdict.BETTER, Verdict.WORSE) and result.used == result.progress.decided_at:
        assert result.last_look.p <= result.last_look.bound_p
    text = " ".join((result.sentence, result.rule, str(result.level), *result.caveats)).lower()
    for word in ("winner", "none", "nan", "inf ", "  ", "..", "no interval,"):
        assert word not in text
    capped = compared(rule, tuple(listed), findings=(exploded("simplified"),))
    assert capped.unaudited is result.unaudited
    assert capped.verdict is (Verdict.INCONCLUSIVE if result.verdict in CLAIMS else result.verdict)
