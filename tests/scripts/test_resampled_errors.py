"""False claims on stored outcomes: pairs of one group, and differences of two groups without their mean."""

import numpy as np
import pytest
import resampled_errors


def test_pairs_of_one_normal_group_err_as_often_as_alpha_allows():
    outcomes = np.random.default_rng(68).standard_normal(40)
    differences = resampled_errors.all_pairs(outcomes)
    assert differences.sum() == pytest.approx(0.0, abs=1e-9)
    for pairs in (6, 20):
        assert 3.0 < resampled_errors.false_claims(differences, pairs) < 7.0


def test_a_single_failure_in_one_group_misleads():
    differences = np.array([-10.0, *np.random.default_rng(68).normal(1.0, 0.1, 10)])
    assert resampled_errors.false_claims(differences - differences.mean(), 6) > 25.0


def test_the_table_has_a_row_for_each_task_and_one_for_all():
    rng = np.random.default_rng(68)
    runs = {"a": [rng.standard_normal(10)] * 2, "b": [rng.standard_normal(10)]}
    differences = {"a": [rng.standard_normal(10)], "b": [rng.standard_normal(10)]}
    lines = list(resampled_errors.errors_table(runs, differences))
    assert len({line.count("|") for line in lines}) == 1
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2:]]
    assert [(row[0], row[1], row[5]) for row in cells] == [("a", "2", "1"), ("b", "1", "1"), ("all", "3", "2")]
