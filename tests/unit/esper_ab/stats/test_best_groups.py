import numpy as np

from esper_ab.stats.best_groups import may_be_best

INF = np.inf


def test_a_group_that_loses_to_another_is_not_among_the_best():
    better_mask = np.zeros((3, 3), dtype=bool)
    better_mask[0, 2] = True
    upper_limits = np.array([[0.0, 2.0, 5.0], [1.5, 0.0, 4.0], [-1.0, 0.5, 0.0]])
    best_mask, distances = may_be_best(better_mask, upper_limits)
    assert best_mask.tolist() == [True, True, False]
    assert distances.tolist() == [1.5, 2.0, 5.0]


def test_a_single_best_group_has_distance_zero_to_the_best():
    better_mask = np.zeros((2, 2), dtype=bool)
    better_mask[0, 1] = True
    _, distances = may_be_best(better_mask, np.array([[0.0, 3.0], [-1.0, 0.0]]))
    assert distances.tolist() == [0.0, 3.0]


def test_an_unknown_distance_to_the_best_group_stays_unknown():
    _, distances = may_be_best(np.zeros((2, 2), dtype=bool), np.array([[0.0, INF], [1.0, 0.0]]))
    assert distances.tolist() == [1.0, INF]


def test_there_is_no_best_group_if_every_group_loses():
    circle = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    assert may_be_best(circle, np.zeros((3, 3))) is None
