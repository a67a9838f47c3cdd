import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.python_data import read_data
from esper_ab.readers.scales import scales_of
from esper_ab.report.external import tables
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.scale import MEAN


def _found(rows_, these=None, *, paired=None, named="runs", **rule):
    return explore(outcomes(rows_), these or scales(), Rule(**rule), paired=paired, rows=named)


def _refused(*args, **asked):
    with pytest.raises(UsageError) as raised:
        _found(*args, **asked)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def _said(result):
    (one,) = result.comparisons
    return " ".join((one.headline, one.sentence, *one.caveats))


def unpaired(a, b):
    """Rows of runs that have names, and no seeds."""
    return [
        {"group": group, "run": f"{group}{place}", "outcome": value}
        for group, values in (("new", a), ("old", b))
        for place, value in enumerate(values)
    ]


def _words(result):
    return [(str(one.verdict), one.question.task) for one in result.comparisons]


def _numbers(result):
    return [(one.estimate, one.low, one.high) for one in result.comparisons]


@settings(max_examples=20, deadline=None)
@given(st.randoms(), st.sampled_from(["s{}", "{}", ""]), st.booleans())
def test_the_order_of_rows_changes_no_number(random, seed, paired):
    a, b = drawn(11, 1.0)
    table = [row | {"seed": seed.format(row["seed"])} for row in rows(a, b)] if seed else unpaired(a, b[:7])
    paired = paired and seed != ""
    mixed = random.sample(table, len(table))
    (one,), (other,) = (_found(found, paired=paired, control="old").comparisons for found in (table, mixed))
    assert one == other


def test_a_zero_has_no_sign():
    a, b = drawn(11, 1.0)
    (one,), (other,) = (_found(rows([zero, *a], [*b, zero])).comparisons for zero in ("-0.0", 0))
    assert one.descriptive == other.descriptive


@settings(max_examples=60, deadline=None)
@given(st.integers(-1000, 120), st.booleans(), st.sampled_from([5.0, 1.0, 0.0]), st.booleans())
def test_no_unit_of_outcomes_is_too_small_or_too_large_for_a_verdict(power, paired, effect, drifts):
    """Squares and fourth powers of spreads underflow long before the spreads do. Below 1e-30 no margin is in reach."""
    near = 2.0 if power > -100 else 0.0
    a, b = drawn(20, effect)
    a = [value + place * drifts for place, value in enumerate(a)]
    (plain,), (scaled,) = (
        _found(rows(*(np.ldexp(side, exponent).tolist() for side in (a, b))), these, paired=paired).comparisons
        for exponent, these in ((0, scales(near or 1e40)), (power, scales(math.ldexp(near, power) or 1e40)))
    )
    assert (scaled.verdict, scaled.effect.df) == (plain.verdict, pytest.approx(plain.effect.df))
    assert [one.kind for one in scaled.findings] == [one.kind for one in plain.findings]
    assert scaled.effect.p == pytest.approx(plain.effect.p, rel=1e-6)
    assert np.ldexp(scaled.effect.se, -power) == pytest.approx(plain.effect.se, rel=1e-6)
    if paired:
        assert scaled.descriptive["shape"].johnson_p == pytest.approx(plain.descriptive["shape"].johnson_p, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(6, 12))
def test_copies_in_one_cluster_change_nothing(copies, pairs):
    """Whatever shares a cluster is one: repeating a pair there can make no verdict surer."""
    found = rows(*drawn(pairs, 2.0))
    repeated = [
        row | {"seed": 100 * copy + int(row["seed"]), "cluster": f"c{row['seed']}"}
        for copy in range(copies)
        for row in found
    ]
    once = _found(found)
    often = _found(repeated)
    assert _words(once) == _words(often)
    assert _numbers(often)[0] == pytest.approx(_numbers(once)[0])


def test_no_sentence_speaks_of_records_or_of_an_extension():
    for found in (rows([1.0] * 9, [1.0] * 9), rows(*drawn(7, 0.1)), rows([1.0], [2.0])):
        one = _found(found).comparisons[0]
        said = " ".join((one.headline, one.sentence, one.rule, *one.caveats))
        assert not [word for word in ("records", "resume", "--seeds", "audit", "lane") if word in said], said


def test_only_pairs_that_exist_are_counted_on():
    """Neither rows of one cluster nor runs without a partner make a difference resolvable."""
    found = rows(*drawn(30, 0.5))
    clustered = _found([row | {"cluster": f"c{int(str(row['seed'])) % 6}"} for row in found], scales(1.0))
    partners = [row for row in found if row["group"] == "new" or int(str(row["seed"])) < 7]
    partners = _found(partners, scales(1.0), paired=True)
    for result, pairs in ((clustered, 6), (partners, 7)):
        one = result.comparisons[0]
        assert (len(one.pairs), one.most_pairs, one.inconclusive) == (pairs, pairs, "uninformative")


def test_more_rows_than_anybody_trains_may_be_items():
    """Prompts of one checkpoint are no training runs, and nothing but the user knows which these are."""
    assert "group new has 31 rows" in _refused(rows(*drawn(31, 1.0), task="one"), scales(2.0, ("one",)), named=None)
    assert _words(_found(rows(*drawn(30, 5.0)), named=None)) == [("BETTER", "")]
    named = [row | {"run": f"{row['group']}{row['seed']}"} for row in rows(*drawn(31, 5.0))]
    assert _words(_found(named, named=None)) == [("BETTER", "")]


def test_seeds_say_whether_runs_form_pairs():
    """No seed in common: no pairs; else a seed without a row in one group is a lost run, whatever the share."""
    a, b = drawn(20, 5.0)
    found = rows(a, b)
    foreign = [row if row["group"] == "new" else row | {"seed": row["seed"] + 100} for row in found]
    assert "(20 and 20 runs)" in _said(_found(foreign))
    written = [row if row["group"] == "new" else row | {"seed": f"{row['seed']:02}"} for row in found]
    assert "(20 pairs)" in _said(_found(written))
    some = [row for row in found if row["group"] == "new" or row["seed"] < 15]
    assert "no run of new and 5 runs of old were lost" in _said(_found(some)).lower()
    assert "(15 pairs)" in _said(_found(some, paired=True))
    assert "(20 and 15 runs)" in _said(_found(some, paired=False))


@pytest.mark.parametrize(
    ("group", "absent", "word"),
    [
        ("new", 1, "INCONCLUSIVE"),
        ("new", 2, "INCONCLUSIVE"),
        ("new", 9, "INCONCLUSIVE"),
        ("old", 1, "BETTER"),
        ("old", 2, "BETTER"),
    ],
)
def test_a_seed_without_a_row_is_a_lost_run(group, absent, word):
    """Most programs write no row for a run that crashed. A loss of the group that looks worse weakens no claim."""
    found = [row for row in rows(*drawn(20, 5.0)) if row["group"] != group or row["seed"] < 20 - absent]
    result = _found(found)
    assert _words(result) == [(word, "")]
    assert f"{absent} run{'s' * (absent > 1)} of {group}" in _said(result)
    counts = "has no row, so it counts as lost" if absent == 1 else "have no row, so they count as lost"
    assert counts in _said(result)
    empty = [row if row in found else row | {"outcome": ""} for row in rows(*drawn(20, 5.0))]
    assert _words(_found(empty)) == [(word, "")]
    left_out = _found(found, paired=True)
    assert _words(left_out) == [("BETTER", "")]
    assert "no run of the other group" in _said(left_out)
    assert "lost" not in left_out.comparisons[0].headline


def test_a_run_without_a_row_in_one_task_is_lost_in_the_mean():
    """A seed of which no group has a run in a task was not meant to have one there."""
    far = rows(*drawn(12, 5.0), task="far")
    time = rows(*drawn(12, 5.0, rng_seed=2), task="time")
    found = [*far, *(row for row in time if row["seed"] < 10 and (row["group"], row["seed"]) != ("new", 3))]
    result = _found(found, scales(2.0, ("far", "time")))
    lost = {one.question.task: (len(one.pairs), one.lost.a, one.lost.b) for one in result.comparisons}
    assert lost == {"far": (12, 0, 0), "time": (9, 1, 0), MEAN: (9, 1, 0)}


def test_lists_of_unequal_length_form_no_pairs():
    with pytest.raises(UsageError, match="new has 7 outcomes and old 6, so positions do not tell"):
        explore(read_data({"new": [1.0] * 7, "old": [2.0] * 6}), scales(), Rule())
    assert _words(explore(read_data({"new": [1.0] * 7, "old": [2.0] * 6}), scales(), Rule(), paired=False))


@pytest.mark.parametrize(("runs", "said"), [((12, 15), True), ((15, 12), True), ((15, 15), False)])
def test_unpaired_groups_of_unequal_number_may_lack_runs(runs, said):
    a, b = drawn(20, 8.0)
    result = _found(unpaired(a[: runs[0]], b[: runs[1]]))
    fewer = "new" if runs[0] < runs[1] else "old"
    assert (f"if runs of {fewer} failed and left no row, this compares survivors" in _said(result)) == said
    lost = _found(unpaired([*a[:12], *[""] * 3], b[:15]))
    assert "left no row" not in _said(lost)


@pytest.mark.parametrize(("runs", "words"), [((6, 40), "BETTER"), ((1, 9), "NO INFERENCE")])
def test_runs_that_form_no_pairs_are_never_called_pairs(runs, words):
    a, b = drawn(40, 8.0)
    result = _found(unpaired(a[: runs[0]], b[: runs[1]]))
    assert _words(result) == [(words, "")]
    for table in tables(result):
        assert not re.search(r"\bpairs?\b", f"{table.title} {table.columns} {table.rows} {table.note}"), table


@pytest.mark.parametrize("failed", ["a", "c"])
def test_a_group_without_an_outcome_is_compared_with_nothing(failed):
    rows_ = unpaired(*drawn(8, 8.0))
    rows_ += [{"group": failed, "run": f"{failed}{place}", "outcome": ""} for place in range(8)]
    result = _found(rows_)
    verdicts = {(one.question.a, one.question.b): str(one.verdict) for one in result.comparisons}
    assert {verdict for pair, verdict in verdicts.items() if failed in pair} == {"NO INFERENCE"}
    assert verdicts["new", "old"] == "BETTER"


def test_lost_runs_that_form_no_pairs_count_against_the_claim():
    a, b = drawn(20, 8.0)
    found = unpaired([*a, "", ""], b)
    for worst, word in (("", "INCONCLUSIVE"), (60.0, "BETTER"), (-400.0, "INCONCLUSIVE")):
        result = _found(found, scales_of(("",), 2.0, worst=worst))
        assert _words(result) == [(word, "")]
        assert "2 runs of new and no run of old were lost." in _said(result)
        assert "partner" not in _said(result)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        (48, 47, "INCONCLUSIVE"),
        (48, 10, "BETTER"),
        (10, 48, "WORSE"),
        (50, 50, "EQUIVALENT"),
    ],
)
def test_runs_that_are_0_or_1_get_an_interval_and_an_exact_test(a, b, word, paired):
    mixed = np.random.default_rng(3)  # in no order, which would be a drift
    found = rows(*(mixed.permutation([1] * count + [0] * (50 - count)).tolist() for count in (a, b)))
    result = _found(found, scales(0.1), paired=paired)
    one = result.comparisons[0]
    assert _words(result) == [(word, "")]
    assert one.low < one.estimate < one.high
    assert ("exact McNemar test" if paired else "Boschloo's exact test") in one.sentence
    assert "an exact test and Newcombe's interval decide" in _said(result)
    percent = _found(
        [row | {"outcome": 100 * row["outcome"]} for row in found], scales_of(("",), 10.0, unit="%"), paired=paired
    )
    assert _words(percent) == [(word, "")]
    assert percent.comparisons[0].low == pytest.approx(100.0 * one.low)
