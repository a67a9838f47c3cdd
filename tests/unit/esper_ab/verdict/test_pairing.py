from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import outcomes, rows, scales

from esper_ab.design.design import Contrast
from esper_ab.verdict.pairing import pair_up, sampled
from esper_ab.verdict.scale import MEAN

NEW_OLD = Contrast(a="new", b="old")


def _pair_rows(table, contrast=NEW_OLD, task_scales=None, form=pair_up):
    read = outcomes(table)
    return form(read.cells, contrast, task_scales or scales(), read.replicates)


def _add_clusters(table, *clusters):
    """Return the rows with these clusters, in the order of the rows."""
    return [row | {"cluster": cluster} for row, cluster in zip(table, clusters, strict=True)]


def test_a_run_without_an_outcome_counts_as_lost():
    table = [row for row in rows([1.0, "", 3.0, 4.0], [5.0, 6.0, 7.0, ""]) if (row["group"], row["seed"]) != ("old", 2)]
    paired = _pair_rows(table)
    assert [(pair.replicate, pair.a, pair.b) for pair in paired.pairs] == [(0, 1.0, 5.0)]
    assert [(half.replicate, half.failed_a, half.failed_b) for half in paired.lost.replicates] == [
        (1, True, False),
        (3, False, True),
    ]
    assert paired.single == ("2 of new",)


def test_a_failed_run_without_a_partner_counts_as_lost():
    table = rows([1.0, ""], [5.0, 6.0])[:3]
    paired = _pair_rows(table)
    assert (paired.lost.a, paired.lost.b, paired.lost.cancelled, paired.single) == (1, 0, (0, 1), ())
    assert [(half.a, half.b) for half in paired.lost.replicates] == [(None, None)]
    assert not _pair_rows(table, form=partial(pair_up, planned=True)).lost.replicates


@pytest.mark.parametrize("form", [pair_up, sampled])
def test_a_run_lost_in_one_task_is_lost_in_the_mean_over_tasks(form):
    table = [
        *rows([4.0, ""], [0.0, 1.0], task="far"),
        *rows([1.0], [1.0], task="time"),
        {"group": "old", "seed": 1, "outcome": 2.0, "task": "time"},
    ]
    paired = _pair_rows(table, Contrast(a="new", b="old", task=MEAN), scales(1.0, ("far", "time")), form)
    assert (len(paired.pairs), paired.lost.a, paired.lost.b) == (1, 1, 0)


def test_pairs_connected_through_clusters_are_averaged():
    table = _add_clusters(rows([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]), "x", "", "y", "", "", "", "x", "y")
    paired = _pair_rows(table)
    assert [(pair.replicate, pair.a) for pair in paired.pairs] == [(0, (1.0 + 2.0 + 4.0) / 3.0), (2, 3.0)]
    assert paired.clusters == (("0", "1", "3"),)


@given(st.lists(st.tuples(*(st.sampled_from(["", "p", "q", "r", "s"]),) * 2), min_size=1, max_size=9))
def test_pairs_with_common_clusters_form_one_unit(clusters):
    count = len(clusters)
    table = _add_clusters(
        rows([float(i) for i in range(count)], [0.0] * count),
        *(name for pair_clusters in clusters for name in pair_clusters),
    )
    paired = _pair_rows(table)
    units = [set(map(int, unit)) for unit in paired.clusters]
    units += [{index} for index in range(count) if not any(index in unit for unit in units)]
    assert len(units) == len(paired.pairs)
    names = [{name for index in unit for name in clusters[index] if name} for unit in units]
    assert all(not (x & y) for i, x in enumerate(names) for y in names[:i])  # units are independent
    for unit in units:  # a unit is connected: it could not be split
        reached = {min(unit)}
        names_seen = set()
        while True:
            names_seen |= {name for index in reached for name in clusters[index] if name}
            grown = {index for index in unit if index in reached or names_seen & set(clusters[index])}
            if grown == reached:
                break
            reached = grown
        assert reached == unit


def test_the_mean_over_tasks_scales_each_task_by_its_margin_and_direction():
    table = [*rows([4.0], [0.0], task="far"), *rows([10.0], [13.0], task="time")]
    task_scales = (*scales(2.0, ("far",)), *scales(3.0, ("time",), better="lower"))
    (pair,) = _pair_rows(table, Contrast(a="new", b="old", task=MEAN), task_scales).pairs
    assert pair.a - pair.b == pytest.approx((4.0 / 2.0 + 3.0 / 3.0) / 2.0)


def test_a_seed_enters_the_mean_only_with_runs_in_all_tasks():
    table = [
        *rows([4.0, 1.0, ""], [0.0, 1.0, 2.0], task="far"),
        *rows([1.0], [1.0], task="time"),
        *rows([1.0], [1.0], task="time", first_seed=2),
    ]
    paired = _pair_rows(table, Contrast(a="new", b="old", task=MEAN), scales(1.0, ("far", "time")))
    assert [pair.replicate for pair in paired.pairs] == [0]
    assert paired.lost.a == 1


def test_runs_with_unknown_positions_are_numbered_in_order_of_groups():
    paired = _pair_rows(rows([1.0, ""], [5.0, 6.0]))
    assert [(pair.position_a, pair.position_b) for pair in paired.pairs] == [(0, 1)]
    assert [(half.position_a, half.position_b) for half in paired.lost.replicates] == [(0, 1)]
