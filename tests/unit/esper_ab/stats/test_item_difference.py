"""Differences on items: written-out formulas, rules that hold for all scores, and data without a test."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.item_difference import item_difference
from esper_ab.stats.item_scores import own_items, shared_items
from esper_ab.stats.paired_difference import paired_difference

LEVELS = ("checkpoints", "trainings")


@st.composite
def scores(draw, runs=(3, 8), tasks=False):
    """Scores of two groups on 8 to 40 items in clusters of 1 to 5, 0/1 or graded."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=8, max_size=16))
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    paired = draw(st.booleans())
    runs_a = draw(st.integers(*runs))
    runs_b = runs_a if paired else draw(st.integers(*runs))
    a = rng.normal(0.5, 0.2, (runs_a, 1)) + rng.random(clusters.size)
    b = rng.normal(0.5, 0.2, (runs_b, 1)) + rng.random(clusters.size)
    if draw(st.booleans()):
        a = (rng.random(a.shape) < a).astype(float)
        b = (rng.random(b.shape) < b).astype(float)
    else:
        a += rng.normal(0.0, 0.1, a.shape)
        b += rng.normal(0.0, 0.1, b.shape)
    task = clusters % 2 if tasks else None
    return {"a": a, "b": b, "paired": paired, "clusters": clusters, "tasks": task}


def numbers(result):
    return (result.mean, result.se, result.df, result.t, result.p, result.v_items, result.v_runs, result.v_residual)


def assert_close(actual, expected):
    for value, expected_value in zip(actual, expected, strict=True):
        assert (value is None) == (expected_value is None)
        if value is not None:
            assert value == pytest.approx(expected_value, rel=1e-7, abs=1e-12)


def test_the_variance_components_equal_their_definitions():
    """Seven runs each, items in four clusters of three: sums written out."""
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(4), 3)
    a = rng.random((7, 12))
    b = rng.random((7, 12))
    result = item_difference(shared_items(a, b, paired=False, clusters=clusters), "trainings")
    d = a.mean(0) - b.mean(0)
    sums = [(d - d.mean())[clusters == c].sum() for c in range(4)]
    v_items = 4 / 3 * np.sum(np.square(sums)) / 12**2
    welch = stats.ttest_ind(a.mean(1), b.mean(1), equal_var=False)
    v_runs = np.var(a.mean(1), ddof=1) / 7 + np.var(b.mean(1), ddof=1) / 7
    v_residual = 0.0
    for y in (a, b):
        residuals = y - y.mean(0) - y.mean(1, keepdims=True) + y.mean()
        v_residual += np.sum(residuals**2) / (len(y) - 1) / 11 / y.size
    v = max(v_items + v_runs - v_residual, v_items, v_runs)
    assert result.v_items == pytest.approx(v_items)
    assert result.v_runs == pytest.approx(v_runs)
    assert result.v_residual == pytest.approx(v_residual)
    assert (result.df_items, result.df_runs) == (3.0, pytest.approx(welch.df))
    assert result.t == pytest.approx(d.mean() / math.sqrt(v))
    assert result.df == pytest.approx(v**2 / (v_items**2 / 3 + v_runs**2 / welch.df))
    assert result.p == pytest.approx(2 * stats.t.sf(abs(result.t), result.df))


@settings(deadline=None)
@given(scores())
def test_the_variance_of_clusters_equals_a_jackknife_estimate(data):
    result = item_difference(shared_items(**data), "checkpoints")
    clusters = data["clusters"]
    d = data["a"].mean(0) - data["b"].mean(0)
    partial_means = [d[clusters != c].mean() for c in np.unique(clusters)]
    number = len(partial_means)
    jackknife = (number - 1) / number * np.sum((np.array(partial_means) - d.mean()) ** 2)
    sizes = np.bincount(clusters)
    assert result.v_items == pytest.approx(jackknife, rel=1e-9)
    assert result.effective_clusters == pytest.approx(d.size**2 / np.sum(sizes**2))
    assert result.df_items == pytest.approx(result.effective_clusters - 1)


@settings(deadline=None)
@given(scores(tasks=True), st.sampled_from(LEVELS))
def test_swapping_the_groups_changes_only_the_sign(data, level):
    base = item_difference(shared_items(**data), level)
    swapped_result = item_difference(shared_items(**{**data, "a": data["b"], "b": data["a"]}), level)
    mean, *other_numbers = numbers(swapped_result)
    assert_close([-mean, *other_numbers], [*numbers(base)[:3], base.t and -base.t, *numbers(base)[4:]])


@settings(deadline=None)
@given(scores(tasks=True), st.sampled_from(LEVELS), st.sampled_from([-3.0, 0.25, 10.0]))
def test_a_shift_of_one_group_moves_only_the_mean(data, level, shift):
    base = item_difference(shared_items(**data), level)
    moved_result = item_difference(shared_items(**{**data, "a": data["a"] + shift}), level)
    assert moved_result.mean == pytest.approx(base.mean + shift)
    # Scores of 0 and 1 that are equal in most runs have no test; a shift of one group hides that they are.
    if base.se is not None and moved_result.se is not None:
        assert_close([moved_result.se, moved_result.df, moved_result.v_items], [base.se, base.df, base.v_items])
    if base.v_runs is not None and moved_result.v_runs is not None:
        assert moved_result.v_runs == pytest.approx(base.v_runs)


@settings(deadline=None)
@given(scores(tasks=True), st.sampled_from(LEVELS), st.sampled_from([0.01, 100.0]))
def test_the_unit_of_scores_does_not_affect_the_test(data, level, unit):
    base = item_difference(shared_items(**data), level)
    scaled_result = item_difference(shared_items(**{**data, "a": unit * data["a"], "b": unit * data["b"]}), level)
    assert_close(
        [scaled_result.mean, scaled_result.t, scaled_result.df, scaled_result.p],
        [unit * base.mean, base.t, base.df, base.p],
    )
    if base.se is not None:
        assert scaled_result.se == pytest.approx(unit * base.se)
        low, high = base.interval(0.05)
        assert scaled_result.interval(0.05) == pytest.approx((unit * low, unit * high))


@settings(deadline=None)
@given(scores(runs=(1, 1)))
def test_the_test_of_single_runs_equals_the_paired_t_over_items(data):
    result = item_difference(shared_items(data["a"], data["b"], paired=False), "checkpoints")
    expected = paired_difference(data["a"][0], data["b"][0])
    assert_close([result.mean, result.se, result.t, result.p], [expected.mean, expected.se, expected.t, expected.p])
    assert result.t is None or result.df == expected.df
    assert (result.v_runs, result.v_residual) == (None, None)


@settings(deadline=None)
@given(scores(), st.sampled_from(LEVELS))
def test_clusters_of_one_item_have_no_effect(data, level):
    items = data["a"].shape[1]
    scores_in_clusters = shared_items(**{**data, "clusters": np.arange(items)[::-1] * 7})
    plain_scores = shared_items(data["a"], data["b"], paired=data["paired"])
    assert_close(numbers(item_difference(scores_in_clusters, level)), numbers(item_difference(plain_scores, level)))


@settings(deadline=None)
@given(scores(tasks=True), st.sampled_from(LEVELS), st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_affect_the_test(data, level, random):
    order = list(range(data["a"].shape[1]))
    random.shuffle(order)
    moved_data = {key: data[key][..., order] for key in ("a", "b", "clusters", "tasks")}
    base = item_difference(shared_items(**data), level)
    assert_close(numbers(item_difference(shared_items(paired=data["paired"], **moved_data), level)), numbers(base))


@settings(deadline=None)
@given(scores(tasks=True))
def test_tasks_are_treated_as_strata(data):
    """The difference is the mean of the tasks' differences, and the variances of items add up."""
    whole = item_difference(shared_items(**data), "checkpoints")
    parts = []
    for task in (0, 1):
        selected = data["tasks"] == task
        part = shared_items(
            data["a"][:, selected], data["b"][:, selected], paired=data["paired"], clusters=data["clusters"][selected]
        )
        parts.append(item_difference(part, "checkpoints"))
    assert whole.mean == pytest.approx(sum(part.mean for part in parts) / 2)
    assume(all(part.v_items is not None for part in parts) and whole.v_items)
    assert whole.v_items == pytest.approx(sum(part.v_items for part in parts) / 4)
    assert whole.df_items == pytest.approx(
        whole.v_items**2 / sum((p.v_items / 4) ** 2 / p.df_items for p in parts if p.v_items)
    )
    assert whole.v_residual == pytest.approx(sum(part.v_residual for part in parts) / 4)


@settings(deadline=None)
@given(scores(), scores())
def test_the_variances_of_groups_with_different_items_are_added(data, other_group):
    a = data["a"]
    b = other_group["b"]
    numbers_b = other_group["clusters"] + 1000
    result = item_difference(own_items(a, b, paired=False, clusters=(data["clusters"], numbers_b)), "trainings")
    separate_results = []
    for y, clusters in ((a, data["clusters"]), (b, numbers_b)):
        scores_against_zero = shared_items(y, np.zeros_like(y), paired=False, clusters=clusters)
        separate_results.append(item_difference(scores_against_zero, "checkpoints"))
    assert result.v_items == pytest.approx(sum(result_of_group.v_items for result_of_group in separate_results))
    squares = sum(
        result_of_group.v_items**2 / result_of_group.df_items
        for result_of_group in separate_results
        if result_of_group.v_items
    )
    assert not squares or result.df_items == pytest.approx(result.v_items**2 / squares)
    assert result.v_residual == pytest.approx(sum(result_of_group.v_residual for result_of_group in separate_results))
    assert result.mean == pytest.approx(a.mean() - b.mean())


def test_different_items_of_the_same_clusters_are_correlated():
    """An effect of a scene that both groups see cancels."""
    rng = np.random.default_rng(2)
    scene = np.repeat(np.arange(30), 4)
    effect = rng.normal(0.0, 5.0, 30)[scene]
    a = rng.random((1, 120)) + effect
    b = rng.random((1, 120)) + effect
    separate_result = item_difference(own_items(a, b, paired=False, clusters=(scene, scene + 30)), "checkpoints")
    joint_result = item_difference(own_items(a, b, paired=False, clusters=(scene, scene)), "checkpoints")
    shared_result = item_difference(shared_items(a, b, paired=False, clusters=scene), "checkpoints")
    assert joint_result.v_items == pytest.approx(shared_result.v_items)
    assert joint_result.df == 29.0
    assert separate_result.v_items > 100 * joint_result.v_items


def test_tasks_with_the_same_clusters_are_correlated():
    """Each scene has an item in both tasks, so the scenes' means over tasks are the units."""
    rng = np.random.default_rng(9)
    a = rng.random((1, 40)) + np.tile(rng.normal(0.0, 1.0, 20), 2)
    b = rng.random((1, 40))
    scenes = np.tile(np.arange(20), 2)
    tasks = np.repeat([0, 1], 20)
    estimate = item_difference(shared_items(a, b, paired=False, clusters=scenes, tasks=tasks), "checkpoints")
    scene_means = (a - b).reshape(2, 20).mean(0)
    assert estimate.v_items == pytest.approx(np.var(scene_means, ddof=1) / 20)
    assert (estimate.df, estimate.effective_clusters) == (pytest.approx(19.0), pytest.approx(20.0))


def test_the_variances_of_tasks_with_different_items_are_added():
    """Four strata: two tasks of each group, with different numbers of items."""
    rng = np.random.default_rng(10)
    a = rng.random((4, 30))
    b = rng.random((5, 24))
    tasks = (np.arange(30) % 3 // 2, np.arange(24) % 4 // 3)
    estimate = item_difference(own_items(a, b, paired=False, tasks=tasks), "trainings")
    parts = [y[:, task == t] for y, task in zip((a, b), tasks, strict=True) for t in (0, 1)]
    variances = [np.var(part.mean(0), ddof=1) / part.shape[1] / 4 for part in parts]
    assert estimate.v_items == pytest.approx(sum(variances))
    squares = sum(v**2 / (part.shape[1] - 1) for v, part in zip(variances, parts, strict=True))
    assert estimate.df_items == pytest.approx(sum(variances) ** 2 / squares)
    means = [part.mean() for part in parts]
    assert estimate.mean == pytest.approx((means[0] + means[1] - means[2] - means[3]) / 2)
    weights = 1.0 / (2 * np.bincount(tasks[1])[tasks[1]])
    assert estimate.effective_clusters == pytest.approx(1 / np.sum(weights**2))
    assert (estimate.items, estimate.clusters, estimate.runs_a, estimate.runs_b) == (24, 24, 4, 5)


def test_noise_shared_by_runs_of_a_pair_cancels():
    """Noise that both runs of a pair share is in no component of paired runs."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0.0, 5.0, (8, 40))
    a = rng.normal(0.0, 0.1, (8, 40)) + noise
    b = rng.normal(0.0, 0.1, (8, 40)) + noise
    paired_result = item_difference(shared_items(a, b, paired=True), "trainings")
    unpaired_result = item_difference(shared_items(a, b, paired=False), "trainings")
    assert paired_result.v_residual < unpaired_result.v_residual / 100
    assert paired_result.se < unpaired_result.se / 5


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("a", "b", "clusters"),
    [
        (np.full((6, 30), 0.7), np.full((6, 30), 0.2), None),  # nothing varies
        (np.full((6, 1), 0.7), np.full((6, 1), 0.2), None),  # one item
        (np.random.default_rng(4).random((6, 30)), np.random.default_rng(5).random((6, 30)), np.zeros(30)),
        (np.full((6, 30), 0.1 + 0.2), np.full((6, 30), 0.3), None),  # only rounding
    ],
)
def test_item_differences_without_spread_have_no_test(level, a, b, clusters):
    result = item_difference(shared_items(a, b, paired=False, clusters=clusters), level)
    assert (result.se, result.t, result.p, result.df, result.interval(0.05)) == (None, None, None, 0.0, None)
    assert not math.isnan(result.mean)
    assert result.degenerate == (result.v_items is not None)
    assert result.log_evidence() is None
    assert result.anytime_interval(20.0) is None


def test_item_differences_in_few_clusters_have_no_test():
    """A claim would depend on five of forty scenes; the paired t has the same rule."""
    a = np.zeros((1, 80))
    a[0, [0, 2, 4, 6, 8]] = 1.0
    shared_scores = shared_items(a, np.zeros((1, 80)), paired=False, clusters=np.arange(80) // 2)
    assert item_difference(shared_scores, "checkpoints").degenerate
    a[0, 10] = 1.0
    shared_scores = shared_items(a, np.zeros((1, 80)), paired=False, clusters=np.arange(80) // 2)
    assert item_difference(shared_scores, "checkpoints").t is not None
    own_scores = own_items(a[:, :12], np.zeros((1, 80)), paired=False)
    assert item_difference(own_scores, "checkpoints").t is not None
    a[0, 10] = 0.0
    own_scores = own_items(a, np.zeros((1, 80)), paired=False)
    assert item_difference(own_scores, "checkpoints").degenerate


def test_a_constant_difference_in_one_task_prevents_the_item_test():
    tasks = np.repeat([0, 1], 15)
    a = np.where(tasks == 0, 0.3, 0.6)[None]
    result = item_difference(shared_items(a, np.zeros((1, 30)), paired=False, tasks=tasks), "checkpoints")
    assert result.mean == pytest.approx(0.45)
    assert result.degenerate


@pytest.mark.parametrize("runs", [1, 2])
def test_a_test_of_trainings_needs_three_runs_per_group(runs):
    rng = np.random.default_rng(6)
    run_scores = shared_items(rng.random((9, 30)), rng.random((runs, 30)), paired=False)
    result = item_difference(run_scores, "trainings")
    assert (result.t, result.degenerate) == (None, False)
    assert item_difference(run_scores, "checkpoints").t is not None


def test_fewer_than_six_runs_reduce_the_degrees_of_freedom():
    rng = np.random.default_rng(7)
    a = rng.random((6, 50)) + rng.normal(0.0, 0.05, (6, 1))
    b = rng.random((6, 50)) + rng.normal(0.0, 0.05, (6, 1))
    result_of_five = item_difference(shared_items(a[:5], b[:5], paired=True), "trainings")
    v = result_of_five.se**2
    assert result_of_five.df == pytest.approx(
        v / (result_of_five.v_items / result_of_five.df_items + result_of_five.v_runs / result_of_five.df_runs)
    )
    six = item_difference(shared_items(a, b, paired=True), "trainings")
    v = six.se**2
    assert six.df == pytest.approx(v**2 / (six.v_items**2 / six.df_items + six.v_runs**2 / six.df_runs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": [[1.0]]}, "one number per item"),
        ({"a": [1.0, 2.0]}, "runs x items"),
        ({"a": [[math.nan, 2.0]]}, "finite"),
        ({"a": [[1.0, 2.0]] * 2, "paired": True}, "equally many"),
        ({"clusters": [1]}, "one number per item"),
    ],
)
def test_scores_with_inconsistent_shapes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        shared_items(**{"a": [[1.0, 2.0]], "b": [[1.0, 2.0]], "paired": False, **change})


def test_groups_without_common_items_need_the_same_tasks():
    rng = np.random.default_rng(8)
    with pytest.raises(ValueError, match="same tasks"):
        own_items(rng.random((2, 4)), rng.random((2, 4)), paired=False, tasks=([0, 0, 1, 1], [0, 0, 2, 2]))


@st.composite
def small_scores(draw):
    """Few runs and items, 0 or 1, tiny or huge, with any clusters and tasks, shared or not."""
    unit = draw(st.sampled_from([1.0, 1e-150, 1e150]))
    is_shared = draw(st.booleans())
    paired = draw(st.booleans())
    runs_a = draw(st.integers(1, 7))
    runs_b = runs_a if paired else draw(st.integers(1, 7))
    items_a = draw(st.integers(1, 9))
    items_b = items_a if is_shared else draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rate = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    a, b = (unit * (rng.random(shape) < rate) for shape in ((runs_a, items_a), (runs_b, items_b)))
    clusters_a, clusters_b = (rng.integers(0, draw(st.integers(1, 9)), size) for size in (items_a, items_b))
    tasks = None
    if draw(st.booleans()) and min(items_a, items_b) > 1:
        tasks = tuple(np.arange(size) % 2 for size in (items_a, items_b))
    if is_shared:
        return shared_items(a, b, paired=paired, clusters=clusters_a, tasks=None if tasks is None else tasks[0])
    return own_items(a, b, paired=paired, clusters=(clusters_a, clusters_b), tasks=tasks)


@settings(deadline=None, max_examples=300)
@given(small_scores(), st.sampled_from(LEVELS))
def test_every_number_of_an_item_difference_is_finite(data, level):
    result = item_difference(data, level)
    present_numbers = [value for value in numbers(result) if value is not None]
    assert all(math.isfinite(value) for value in present_numbers)
    assert (result.t is None) == (result.se is None) == (result.p is None) == (result.interval(0.05) is None)
    if result.t is not None:
        # Satterthwaite's degrees of freedom of two equal variances, each with one or more, are at least a half.
        assert result.df >= 0.5
        assert result.se > 0.0
        assert all(math.isfinite(limit) for limit in result.interval(0.05))
        assert 0.0 <= result.p <= 1.0
