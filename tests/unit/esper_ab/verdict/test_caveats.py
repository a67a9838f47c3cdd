"""Each caveat appears only if its condition holds."""

import numpy as np
import pytest
from support.outcomes.compared_designs import compared, design, exploded, open_ended, small

from esper_ab.stats.pair import Samples
from esper_ab.verdict.caveats import context_of
from esper_ab.verdict.finding import MIXED_CODE, SEED, Finding


@pytest.mark.parametrize(
    ("runs_of_small_group", "runs_of_large_group", "expected"),
    [(1, 9, False), (2, 9, True), (4, 9, True), (4, 8, False)],
)
def test_very_unequal_group_sizes_get_a_caveat(runs_of_small_group, runs_of_large_group, expected):
    runs = 70.0 + np.sin(np.arange(runs_of_large_group))
    result = compared(design(20, test="welch", positions=1), Samples(a=runs[:runs_of_small_group], b=runs), complete=20)
    assert any(caveat.startswith("Unequal groups") for caveat in result.caveats) == expected


def test_a_caveat_counts_the_missing_pairs():
    def find_missing(result):
        return [caveat for caveat in result.caveats if "planned pairs are complete" in caveat]

    assert find_missing(small(8, open_ended(), planned=9)) == ["8 of 9 planned pairs are complete."]
    assert find_missing(small(8, open_ended(), planned=8)) == []
    assert find_missing(small(5, design(6)))[0].startswith("5 of 6 planned pairs are complete. Only planned looks give")


def test_statistics_know_whether_their_comparison_is_undecided():
    results = small(8), small(findings=(exploded(),)), small()
    assert [context_of(result).undecided for result in results] == [True, False, False]


def test_statistics_know_whether_runs_form_pairs():
    rng = np.random.default_rng(3)
    a, b = rng.normal(70.0, 1.0, (2, 8))
    unpaired_result = compared(design(8, test="welch", positions=1), Samples(a=a, b=b), complete=8)
    assert not context_of(unpaired_result).paired


def test_seeds_that_do_not_repeat_are_a_warning_beside_the_verdict():
    finding = Finding(SEED, "notes", (), "A seed does not repeat.")
    assert "! A seed does not repeat." in small(findings=(finding,)).answer
    assert "! A seed does not repeat." not in small().answer


def test_results_of_different_files_of_a_trainer_are_a_warning_beside_the_verdict():
    finding = Finding(MIXED_CODE, "notes", (), "a/0 was trained with other files.")
    assert "! a/0 was trained with other files." in small(findings=(finding,)).answer
