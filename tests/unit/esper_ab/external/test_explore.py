import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.elsewhere import drawn, endpoints, rows, scales

from esper_ab.contracts.errors import UsageError
from esper_ab.external.endpoints import MEAN
from esper_ab.external.explore import explore
from esper_ab.external.plan import Rule


def _found(rows_, these=None, **rule):
    return explore(endpoints(rows_), these or scales(), Rule(**rule))


def _words(result):
    return [(str(one.comparison.verdict), one.task) for one in result.comparisons]


def _numbers(result):
    return [(one.comparison.estimate, one.comparison.low, one.comparison.high) for one in result.comparisons]


@pytest.mark.parametrize(("pairs", "effect", "word"), [
    (20, 5.0, "BETTER"), (20, -5.0, "WORSE"), (5, 5.0, "NO INFERENCE"), (8, 0.5, "INCONCLUSIVE"),
    (200, 0.0, "EQUIVALENT"),
])  # fmt: skip
def test_the_verdicts_are_those_of_a_plan_and_nothing_was_declared(pairs, effect, word):
    found = _found(rows(*drawn(pairs, effect)))
    assert _words(found) == [(word, "")]
    assert found.exploratory
    assert not found.comparisons[0].comparison.question.declared


def test_the_order_of_rows_is_no_matter():
    found = rows(*drawn(9, 1.0))
    assert _numbers(_found(found)) == _numbers(_found([row for row in found if row["group"] == "new"] + found[1::2]))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(6, 12))
def test_copies_in_one_cluster_change_nothing(copies, pairs):
    """Whatever shares a cluster is one: repeating a pair there can make no verdict surer."""
    found = rows(*drawn(pairs, 2.0))
    repeated = [
        row | {"seed": 100 * copy + int(row["seed"]), "cluster": f"c{row['seed']}"}
        for copy in range(copies) for row in found
    ]
    once, often = _found(found), _found(repeated)
    assert _words(once) == _words(often)
    assert _numbers(often)[0] == pytest.approx(_numbers(once)[0])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_unit_is_no_matter(scale):
    a, b = drawn(20, 1.5)
    scaled = _found(rows([x * scale for x in a], [x * scale for x in b]), scales(2.0 * scale))
    assert _words(scaled) == _words(_found(rows(a, b)))
    assert _numbers(scaled)[0] == pytest.approx([x * scale for x in _numbers(_found(rows(a, b)))[0]], rel=1e-6)


def test_where_lower_is_better_the_words_turn_round():
    found = rows(*drawn(20, 5.0))
    assert _words(_found(found, scales(better="lower"))) == [("WORSE", "")]


def test_a_lost_run_is_counted_against_the_claim():
    a, b = drawn(20, 2.5)
    assert _words(_found(rows(a, b))) == [("BETTER", "")]
    found = _found(rows([*a[:15], *[""] * 5], b))
    assert found.comparisons[0].comparison.lost.a == 5
    assert _words(found) == [("INCONCLUSIVE", "")]


def test_several_tasks_and_their_mean_share_alpha():
    found = [*rows(*drawn(20, 5.0), task="one"), *rows(*drawn(20, 5.0, rng_seed=2), task="two")]
    result = _found(found, scales(2.0, ("one", "two")), alpha=0.03)
    assert _words(result) == [("BETTER", "one"), ("BETTER", "two"), ("BETTER", MEAN)]
    assert [one.comparison.question.alpha for one in result.comparisons] == pytest.approx([0.01] * 3)
    assert result.comparisons[2].comparison.question.design.margin == 1.0


def test_runs_without_a_partner_are_told():
    found = rows(*drawn(9, 1.0))[:-1]
    assert any("seed 8 without a run" in note for note in _found(found).notes)


@pytest.mark.parametrize("found", [
    [row | {"group": "new"} for row in rows([1.0], [2.0])[:1]],
    [{"group": "a", "seed": 0, "endpoint": 1.0}, {"group": "b", "seed": 1, "endpoint": 1.0}],
])  # fmt: skip
def test_where_nothing_can_be_compared_it_is_refused(found):
    with pytest.raises(UsageError):
        _found(found)


def test_no_sentence_speaks_of_records_or_of_an_extension():
    for found in (rows([1.0] * 9, [1.0] * 9), rows(*drawn(7, 0.1)), rows([1.0], [2.0])):
        one = _found(found).comparisons[0].comparison
        said = " ".join((one.headline, one.sentence, one.rule, *one.caveats))
        assert not [word for word in ("records", "extend", "--replicates", "audit", "lane") if word in said], said


def test_only_pairs_that_exist_are_counted_on():
    """Neither rows of one cluster nor runs without a partner make a difference resolvable."""
    found = rows(*drawn(30, 0.5))
    clustered = _found([row | {"cluster": f"c{int(str(row['seed'])) % 6}"} for row in found], scales(1.0))
    partners = _found([row for row in found if row["group"] == "new" or int(str(row["seed"])) < 7], scales(1.0))
    for result, pairs in ((clustered, 6), (partners, 7)):
        one = result.comparisons[0].comparison
        assert (len(one.pairs), one.most_pairs, one.inconclusive) == (pairs, pairs, "uninformative")
