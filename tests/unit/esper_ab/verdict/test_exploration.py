import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales
from support.outcomes.item_tables import item_columns

import esper_ab
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.python_data import read_data
from esper_ab.readers.scales import scales_of
from esper_ab.report.external import tables
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.scale import MEAN


def _explore(rows_, task_scales=None, *, paired=None, row_kind="runs", **rule):
    return explore(outcomes(rows_), task_scales or scales(), Rule(**rule), paired=paired, rows=row_kind)


def _expect_refusal(*args, **options):
    with pytest.raises(UsageError) as refusal:
        _explore(*args, **options)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def _join_sentences(result):
    (comparison,) = result.comparisons
    return " ".join((comparison.headline, comparison.sentence, *comparison.caveats))


def make_unpaired_rows(a, b):
    """Return rows of runs that have names and no seeds."""
    return [
        {"group": group, "run": f"{group}{index}", "outcome": value}
        for group, values in (("new", a), ("old", b))
        for index, value in enumerate(values)
    ]


def _list_verdicts(result):
    return [(str(comparison.verdict), comparison.question.task) for comparison in result.comparisons]


def _list_estimates(result):
    return [(comparison.estimate, comparison.low, comparison.high) for comparison in result.comparisons]


@settings(max_examples=20, deadline=None)
@given(st.randoms(), st.sampled_from(["s{}", "{}", ""]), st.booleans())
def test_the_order_of_rows_does_not_affect_an_answer(random, seed, paired):
    a, b = drawn(11, 1.0)
    table = [row | {"seed": seed.format(row["seed"])} for row in rows(a, b)] if seed else make_unpaired_rows(a, b[:7])
    paired = paired and seed != ""
    mixed_table = random.sample(table, len(table))
    (ordered_result,), (shuffled_result,) = (
        _explore(table_rows, paired=paired, control="old").comparisons for table_rows in (table, mixed_table)
    )
    assert ordered_result == shuffled_result


def test_negative_zero_equals_zero():
    a, b = drawn(11, 1.0)
    (negative_result,), (positive_result,) = (
        _explore(rows([zero, *a], [*b, zero])).comparisons for zero in ("-0.0", 0)
    )
    assert negative_result.descriptive == positive_result.descriptive


@settings(max_examples=60, deadline=None)
@given(st.integers(-1000, 120), st.booleans(), st.sampled_from([5.0, 1.0, 0.0]), st.booleans())
def test_the_unit_of_outcomes_does_not_affect_the_verdict(power, paired, effect, drifts):
    """Squares and fourth powers of spreads underflow long before the spreads do. Below 1e-30 no margin is reached."""
    near_margin = 2.0 if power > -100 else 0.0
    a, b = drawn(20, effect)
    a = [value + index * drifts for index, value in enumerate(a)]
    (plain_result,), (scaled_result,) = (
        _explore(rows(*(np.ldexp(side, exponent).tolist() for side in (a, b))), task_scales, paired=paired).comparisons
        for exponent, task_scales in (
            (0, scales(near_margin or 1e40)),
            (power, scales(math.ldexp(near_margin, power) or 1e40)),
        )
    )
    assert (scaled_result.verdict, scaled_result.effect.df) == (
        plain_result.verdict,
        pytest.approx(plain_result.effect.df),
    )
    assert [finding.kind for finding in scaled_result.findings] == [finding.kind for finding in plain_result.findings]
    assert scaled_result.effect.p == pytest.approx(plain_result.effect.p, rel=1e-6)
    assert np.ldexp(scaled_result.effect.se, -power) == pytest.approx(plain_result.effect.se, rel=1e-6)
    if paired:
        assert scaled_result.descriptive["shape"].johnson_p == pytest.approx(
            plain_result.descriptive["shape"].johnson_p, rel=1e-6
        )


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(6, 12))
def test_copies_of_runs_in_one_cluster_do_not_change_the_verdict(copies, pairs):
    """Rows that share a cluster count as one, so repeating a pair there makes no verdict surer."""
    table = rows(*drawn(pairs, 2.0))
    repeated_rows = [
        row | {"seed": 100 * copy + int(row["seed"]), "cluster": f"c{row['seed']}"}
        for copy in range(copies)
        for row in table
    ]
    single_answer = _explore(table)
    multiple = _explore(repeated_rows)
    assert _list_verdicts(single_answer) == _list_verdicts(multiple)
    assert _list_estimates(multiple)[0] == pytest.approx(_list_estimates(single_answer)[0])


def test_sentences_about_foreign_outcomes_do_not_mention_records():
    for table in (rows([1.0] * 9, [1.0] * 9), rows(*drawn(7, 0.1)), rows([1.0], [2.0])):
        comparison = _explore(table).comparisons[0]
        text = " ".join((comparison.headline, comparison.sentence, comparison.rule, *comparison.caveats))
        assert not [word for word in ("records", "resume", "--seeds", "audit", "lane") if word in text], text


def test_the_resolvable_difference_depends_only_on_existing_pairs():
    """Neither rows of one cluster nor runs without a partner make a difference resolvable."""
    table = rows(*drawn(30, 0.5))
    clustered = _explore([row | {"cluster": f"c{int(str(row['seed'])) % 6}"} for row in table], scales(1.0))
    partners = [row for row in table if row["group"] == "new" or int(str(row["seed"])) < 7]
    partners = _explore(partners, scales(1.0), paired=True)
    for result, pairs in ((clustered, 6), (partners, 7)):
        comparison = result.comparisons[0]
        assert (len(comparison.pairs), comparison.most_pairs, comparison.inconclusive) == (
            pairs,
            pairs,
            "uninformative",
        )


def test_more_than_30_unnamed_rows_per_group_are_refused_as_possible_items():
    """Prompts of one checkpoint are not training runs, and only the user knows which of the two the rows are."""
    assert "group new has 31 rows" in _expect_refusal(
        rows(*drawn(31, 1.0), task="one"), scales(2.0, ("one",)), row_kind=None
    )
    assert _list_verdicts(_explore(rows(*drawn(30, 5.0)), row_kind=None)) == [("BETTER", "")]
    named_rows = [row | {"run": f"{row['group']}{row['seed']}"} for row in rows(*drawn(31, 5.0))]
    assert _list_verdicts(_explore(named_rows, row_kind=None)) == [("BETTER", "")]


def test_runs_form_pairs_if_the_groups_have_common_seeds():
    """Without a common seed there are no pairs; otherwise a seed without a row in one group is a lost run."""
    a, b = drawn(20, 5.0)
    table = rows(a, b)
    other_seeds = [row if row["group"] == "new" else row | {"seed": row["seed"] + 100} for row in table]
    assert "(20 and 20 runs)" in _join_sentences(_explore(other_seeds))
    padded_seeds = [row if row["group"] == "new" else row | {"seed": f"{row['seed']:02}"} for row in table]
    assert "(20 pairs)" in _join_sentences(_explore(padded_seeds))
    incomplete_rows = [row for row in table if row["group"] == "new" or row["seed"] < 15]
    assert "no run of new and 5 runs of old were lost" in _join_sentences(_explore(incomplete_rows)).lower()
    assert "(15 pairs)" in _join_sentences(_explore(incomplete_rows, paired=True))
    assert "(20 and 15 runs)" in _join_sentences(_explore(incomplete_rows, paired=False))


@pytest.mark.parametrize(
    ("group", "absent_runs", "verdict"),
    [
        ("new", 1, "INCONCLUSIVE"),
        ("new", 2, "INCONCLUSIVE"),
        ("new", 9, "INCONCLUSIVE"),
        ("old", 1, "BETTER"),
        ("old", 2, "BETTER"),
    ],
)
def test_a_seed_without_a_row_is_a_lost_run(group, absent_runs, verdict):
    """Most programs write no row for a run that crashed. A loss in the group that looks worse weakens no claim."""
    present_rows = [row for row in rows(*drawn(20, 5.0)) if row["group"] != group or row["seed"] < 20 - absent_runs]
    result = _explore(present_rows)
    assert _list_verdicts(result) == [(verdict, "")]
    assert f"{absent_runs} run{'s' * (absent_runs > 1)} of {group}" in _join_sentences(result)
    counts = "has no row, so it counts as lost" if absent_runs == 1 else "have no row, so they count as lost"
    assert counts in _join_sentences(result)
    empty_rows = [row if row in present_rows else row | {"outcome": ""} for row in rows(*drawn(20, 5.0))]
    assert _list_verdicts(_explore(empty_rows)) == [(verdict, "")]
    unpaired_seeds_answer = _explore(present_rows, paired=True)
    assert _list_verdicts(unpaired_seeds_answer) == [("BETTER", "")]
    assert "no run of the other group" in _join_sentences(unpaired_seeds_answer)
    assert "lost" not in unpaired_seeds_answer.comparisons[0].headline


def test_a_run_without_a_row_in_one_task_is_lost_in_the_mean():
    """A seed without a run of any group in a task was not planned there."""
    far_rows = rows(*drawn(12, 5.0), task="far")
    time = rows(*drawn(12, 5.0, rng_seed=2), task="time")
    table = [*far_rows, *(row for row in time if row["seed"] < 10 and (row["group"], row["seed"]) != ("new", 3))]
    result = _explore(table, scales(2.0, ("far", "time")))
    losses_by_task = {
        comparison.question.task: (len(comparison.pairs), comparison.lost.a, comparison.lost.b)
        for comparison in result.comparisons
    }
    assert losses_by_task == {"far": (12, 0, 0), "time": (9, 1, 0), MEAN: (9, 1, 0)}


def test_lists_of_unequal_length_form_no_pairs():
    with pytest.raises(UsageError, match="new has 7 outcomes and old 6, so positions do not tell"):
        explore(read_data({"new": [1.0] * 7, "old": [2.0] * 6}), scales(), Rule())
    assert _list_verdicts(explore(read_data({"new": [1.0] * 7, "old": [2.0] * 6}), scales(), Rule(), paired=False))


@pytest.mark.parametrize(("runs", "expected"), [((12, 15), True), ((15, 12), True), ((15, 15), False)])
def test_unpaired_groups_of_unequal_size_get_a_caveat_about_missing_runs(runs, expected):
    a, b = drawn(20, 8.0)
    result = _explore(make_unpaired_rows(a[: runs[0]], b[: runs[1]]))
    smaller_group = "new" if runs[0] < runs[1] else "old"
    assert (
        f"if runs of {smaller_group} failed and left no row, this compares survivors" in _join_sentences(result)
    ) == expected
    answer_with_losses = _explore(make_unpaired_rows([*a[:12], *[""] * 3], b[:15]))
    assert "left no row" not in _join_sentences(answer_with_losses)


@pytest.mark.parametrize(("runs", "verdict"), [((6, 40), "BETTER"), ((1, 9), "NO INFERENCE")])
def test_tables_do_not_call_unpaired_runs_pairs(runs, verdict):
    a, b = drawn(40, 8.0)
    result = _explore(make_unpaired_rows(a[: runs[0]], b[: runs[1]]))
    assert _list_verdicts(result) == [(verdict, "")]
    for table in tables(result):
        assert not re.search(r"\bpairs?\b", f"{table.title} {table.columns} {table.rows} {table.note}"), table


@pytest.mark.parametrize("failed_group", ["a", "c"])
def test_a_comparison_with_an_empty_group_has_no_inference(failed_group):
    rows_ = make_unpaired_rows(*drawn(8, 8.0))
    rows_ += [{"group": failed_group, "run": f"{failed_group}{index}", "outcome": ""} for index in range(8)]
    result = _explore(rows_)
    verdicts = {
        (comparison.question.a, comparison.question.b): str(comparison.verdict) for comparison in result.comparisons
    }
    assert {verdict for pair, verdict in verdicts.items() if failed_group in pair} == {"NO INFERENCE"}
    assert verdicts["new", "old"] == "BETTER"


def test_lost_unpaired_runs_count_against_the_claim():
    a, b = drawn(20, 8.0)
    table = make_unpaired_rows([*a, "", ""], b)
    for worst_outcome, verdict in (("", "INCONCLUSIVE"), (60.0, "BETTER"), (-400.0, "INCONCLUSIVE")):
        result = _explore(table, scales_of(("",), 2.0, worst=worst_outcome))
        assert _list_verdicts(result) == [(verdict, "")]
        assert "2 runs of new and no run of old were lost." in _join_sentences(result)
        assert "partner" not in _join_sentences(result)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (48, 47, "INCONCLUSIVE"),
        (48, 10, "BETTER"),
        (10, 48, "WORSE"),
        (50, 50, "EQUIVALENT"),
    ],
)
def test_outcomes_of_0_or_1_get_an_exact_test(a, b, verdict, paired):
    rng = np.random.default_rng(3)  # shuffles, because an order would be a drift
    table = rows(*(rng.permutation([1] * count + [0] * (50 - count)).tolist() for count in (a, b)))
    result = _explore(table, scales(0.1), paired=paired)
    comparison = result.comparisons[0]
    assert _list_verdicts(result) == [(verdict, "")]
    assert comparison.low < comparison.estimate < comparison.high
    assert ("exact McNemar test" if paired else "Boschloo's exact test") in comparison.sentence
    assert "an exact test and Newcombe's interval decide" in _join_sentences(result)
    percent = _explore(
        [row | {"outcome": 100 * row["outcome"]} for row in table], scales_of(("",), 10.0, unit="%"), paired=paired
    )
    assert _list_verdicts(percent) == [(verdict, "")]
    assert percent.comparisons[0].low == pytest.approx(100.0 * comparison.low)


def rollouts(**changes):
    columns = item_columns(runs=1, items=30, run_column="")
    columns["episode"] = columns.pop("question")
    return esper_ab.compare_outcomes(columns | changes, margin=0.02).observations.reading


def test_a_note_says_that_numbered_episodes_are_paired():
    assert rollouts()[-1] == (
        "Episodes of the same number form pairs, as if they began alike; if they did not: --unpaired."
    )


def test_declared_pairs_or_named_episodes_cause_no_note():
    columns = item_columns(runs=1, items=30, run_column="")
    columns["episode"] = [f"kitchen {number}" for number in columns.pop("question")]
    assert len(esper_ab.compare_outcomes(columns, margin=0.02).observations.reading) == 1
    columns["episode"] = [*range(30)] * 2
    for paired in (True, False):
        assert len(esper_ab.compare_outcomes(columns, margin=0.02, paired=paired).observations.reading) == 1


def test_paired_questions_cause_no_note():
    assert len(esper_ab.compare_outcomes(item_columns(runs=1, items=30), margin=0.02).observations.reading) == 1
