from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import outcomes, rows, scales

from esper_ab.design.design import Contrast
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.pairing import leading_complete, pair_up, sampled
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import MEAN

NEW_OLD = Contrast(a="new", b="old")


def _pair_rows(table, contrast=NEW_OLD, task_scales=None, form=pair_up):
    observations = outcomes(table)
    return form(observations.rows, contrast, task_scales or scales(), observations.replicates)


def _add_clusters(table, *clusters):
    """Return the rows with these clusters, in the order of the rows."""
    return [row | {"cluster": cluster} for row, cluster in zip(table, clusters, strict=True)]


def test_a_run_without_an_outcome_counts_as_lost():
    table = [row for row in rows([1.0, "", 3.0, 4.0], [5.0, 6.0, 7.0, ""]) if (row["group"], row["seed"]) != ("old", 2)]
    pairing = _pair_rows(table)
    assert [(pair.replicate, pair.a, pair.b) for pair in pairing.pairs] == [(0, 1.0, 5.0)]
    assert [(lost_pair.replicate, lost_pair.failed_a, lost_pair.failed_b) for lost_pair in pairing.lost.replicates] == [
        (1, True, False),
        (3, False, True),
    ]
    assert pairing.single == ("2 of new",)


def test_a_failed_run_without_a_partner_counts_as_lost():
    table = rows([1.0, ""], [5.0, 6.0])[:3]
    pairing = _pair_rows(table)
    assert (pairing.lost.a, pairing.lost.b, pairing.lost.cancelled, pairing.single) == (1, 0, (0, 1), ())
    assert [(lost_pair.a, lost_pair.b) for lost_pair in pairing.lost.replicates] == [(None, None)]
    assert not _pair_rows(table, form=partial(pair_up, is_planned=True)).lost.replicates


@pytest.mark.parametrize("form", [pair_up, sampled])
def test_a_run_lost_in_one_task_is_lost_in_the_mean_over_tasks(form):
    table = [
        *rows([4.0, ""], [0.0, 1.0], task="far"),
        *rows([1.0], [1.0], task="time"),
        {"group": "old", "seed": 1, "outcome": 2.0, "task": "time"},
    ]
    pairing = _pair_rows(table, Contrast(a="new", b="old", task=MEAN), scales(1.0, ("far", "time")), form)
    assert (len(pairing.pairs), pairing.lost.a, pairing.lost.b) == (1, 1, 0)


def test_pairs_connected_through_clusters_are_averaged():
    table = _add_clusters(rows([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]), "x", "", "y", "", "", "", "x", "y")
    pairing = _pair_rows(table)
    assert [(pair.replicate, pair.a) for pair in pairing.pairs] == [(0, (1.0 + 2.0 + 4.0) / 3.0), (2, 3.0)]
    assert pairing.clusters == (("0", "1", "3"),)


@given(st.lists(st.tuples(*(st.sampled_from(["", "p", "q", "r", "s"]),) * 2), min_size=1, max_size=9))
def test_pairs_with_common_clusters_form_one_unit(clusters):
    count = len(clusters)
    table = _add_clusters(
        rows([float(i) for i in range(count)], [0.0] * count),
        *(name for pair_clusters in clusters for name in pair_clusters),
    )
    pairing = _pair_rows(table)
    units = [set(map(int, unit)) for unit in pairing.clusters]
    units += [{index} for index in range(count) if not any(index in unit for unit in units)]
    assert len(units) == len(pairing.pairs)
    names = [{name for index in unit for name in clusters[index] if name} for unit in units]
    assert all(not (x & y) for i, x in enumerate(names) for y in names[:i])  # units are independent
    for unit in units:  # a unit is connected: it could not be split
        reached = {min(unit)}
        cluster_names = set()
        while True:
            cluster_names |= {name for index in reached for name in clusters[index] if name}
            grown_unit = {index for index in unit if index in reached or cluster_names & set(clusters[index])}
            if grown_unit == reached:
                break
            reached = grown_unit
        assert reached == unit


def test_the_mean_over_tasks_scales_each_task_by_its_margin_and_direction():
    table = [*rows([4.0], [0.0], task="far"), *rows([10.0], [13.0], task="time")]
    task_scales = (*scales(2.0, ("far",)), *scales(3.0, ("time",), better_direction="lower"))
    (pair,) = _pair_rows(table, Contrast(a="new", b="old", task=MEAN), task_scales).pairs
    assert pair.a - pair.b == pytest.approx((4.0 / 2.0 + 3.0 / 3.0) / 2.0)


def test_a_seed_enters_the_mean_only_with_runs_in_all_tasks():
    table = [
        *rows([4.0, 1.0, ""], [0.0, 1.0, 2.0], task="far"),
        *rows([1.0], [1.0], task="time"),
        *rows([1.0], [1.0], task="time", first_seed=2),
    ]
    pairing = _pair_rows(table, Contrast(a="new", b="old", task=MEAN), scales(1.0, ("far", "time")))
    assert [pair.replicate for pair in pairing.pairs] == [0]
    assert pairing.lost.a == 1


def test_runs_with_unknown_positions_are_numbered_in_order_of_groups():
    pairing = _pair_rows(rows([1.0, ""], [5.0, 6.0]))
    assert [(pair.position_a, pair.position_b) for pair in pairing.pairs] == [(0, 1)]
    assert [(lost_pair.position_a, lost_pair.position_b) for lost_pair in pairing.lost.replicates] == [(0, 1)]


# The same pairs, replicate by replicate.

TASKS = ("far", "time")
SEEDS = ("0", "1", "2", "3")
RUN = st.one_of(
    st.none(),  # no run
    st.tuples(st.one_of(st.none(), st.integers(-9, 9)), st.booleans(), st.one_of(st.none(), st.integers(0, 3))),
)
GRIDS = st.fixed_dictionaries(
    {(group, task, seed): RUN for group in ("new", "old") for task in TASKS for seed in SEEDS}
)


def _runs_of(grid):
    rows = [
        Observation(
            group=group,
            task=task,
            replicate=seed,
            value=None if run[0] is None else float(run[0]),
            cancelled=run[0] is None and run[1],
            place=run[2],
        )
        for (group, task, seed), run in grid.items()
        if run is not None
    ]
    return {(row.group, row.task, row.replicate): row for row in rows}


def _side(runs, group, tasks, seed, partial):
    """Return the runs of a group in a replicate, whether one failed, and their outcome."""
    own = [runs[group, task, seed] for task in tasks if (group, task, seed) in runs]
    failed = any(run.value is None and not run.cancelled for run in own)
    if len(own) < len(tasks) and not (partial and failed):
        return [], False, None
    if len(own) < len(tasks) or any(run.value is None for run in own):
        return own, failed, None
    if len(tasks) == 1:
        return own, failed, own[0].value
    return own, failed, (own[0].value / 2.0 - own[1].value / 3.0) / 2.0  # by margin and direction


def _paired_one_by_one(runs, tasks, planned, absent_lost):
    pairs, halves, single, absent = [], [], [], []
    for place, seed in enumerate(SEEDS):
        (own_a, failed_a, a), (own_b, failed_b, b) = (
            _side(runs, group, tasks, seed, not planned) for group in ("new", "old")
        )
        positions = (0, 1)
        if own_a and own_b and own_a[0].place is not None and own_b[0].place is not None:
            positions = (own_a[0].place, own_b[0].place)
        if a is not None and b is not None:
            pairs.append((place, a, b, *positions))
            continue
        existing = [[(group, task, seed) in runs for group in ("new", "old")] for task in tasks]
        meant = absent_lost and all(map(any, existing))
        lacks_a, lacks_b = (meant and not all(column) for column in zip(*existing, strict=True))
        absent += [f"{seed} of {group}" for group, lacks in (("new", lacks_a), ("old", lacks_b)) if lacks]
        half = (place, a, b, failed_a or lacks_a, failed_b or lacks_b, *positions)
        if (not planned and (half[3] or half[4])) or (own_a and own_b):
            halves.append(half)
        elif own_a or own_b:
            single.append(f"{seed} of {'new' if own_a else 'old'}")
    return pairs, halves, single, absent


@settings(max_examples=300)
@given(GRIDS, st.sampled_from([("far",), ("time",), TASKS]), st.sampled_from([(0, 0), (0, 1), (1, 0)]))
def test_all_pairs_are_those_that_are_formed_one_by_one(grid, tasks, flags):
    planned, absent_lost = map(bool, flags)
    runs = _runs_of(grid)
    contrast = Contrast(a="new", b="old", task=tasks[0] if len(tasks) == 1 else MEAN)
    task_scales = (*scales(2.0, ("far",)), *scales(3.0, ("time",), better_direction="lower"))
    paired = pair_up(Runs.of(runs.values()), contrast, task_scales, SEEDS, is_planned=planned, absent_lost=absent_lost)
    pairs, halves, single, absent = _paired_one_by_one(runs, tasks, planned, absent_lost)
    assert list(map(msgspec.structs.astuple, paired.pairs)) == pairs
    assert list(map(msgspec.structs.astuple, paired.lost.replicates)) == halves
    assert (list(paired.single), list(paired.absent)) == (single, absent)


@given(GRIDS, st.sampled_from([("far",), TASKS]), st.booleans())
def test_all_samples_are_those_that_are_drawn_one_by_one(grid, tasks, planned):
    runs = _runs_of(grid)
    contrast = Contrast(a="new", b="old", task=tasks[0] if len(tasks) == 1 else MEAN)
    task_scales = (*scales(2.0, ("far",)), *scales(3.0, ("time",), better_direction="lower"))
    found = sampled(Runs.of(runs.values()), contrast, task_scales, SEEDS, is_planned=planned)
    lost = []
    for group, values in (("new", found.pairs.a), ("old", found.pairs.b)):
        sides = [_side(runs, group, tasks, seed, True) for seed in SEEDS]
        assert values.tolist() == [value for _, _, value in sides if value is not None]
        lost += [(place, group) for place, (own, _, value) in enumerate(sides) if own and value is None]
    expected = [(place if planned else 0, group == "new") for place, group in lost]
    assert [(half.replicate, half.failed_a) for half in found.lost.replicates] == expected


@given(GRIDS)
def test_leading_replicates_are_complete_until_a_group_has_no_run(grid):
    runs = _runs_of(grid)
    done = [all((group, "far", seed) in runs for group in ("new", "old")) for seed in SEEDS]
    contrast = Contrast(a="new", b="old", task="far")
    leading = leading_complete(Runs.of(runs.values()), contrast, scales(1.0, TASKS), SEEDS)
    assert leading == (done.index(False) if False in done else len(SEEDS))
