from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outcomes.csv_outcomes import outcomes, rows, scales

from esper_ab.design.design import Contrast
from esper_ab.verdict.pairing import pair_up, sampled
from esper_ab.verdict.scale import MEAN

NEW_OLD = Contrast(a="new", b="old")


def _paired(found, contrast=NEW_OLD, these=None, form=pair_up):
    read = outcomes(found)
    return form(read.cells, contrast, these or scales(), read.replicates)


def _in(found, *clusters):
    """Clusters in the order of the rows."""
    return [row | {"cluster": cluster} for row, cluster in zip(found, clusters, strict=True)]


def test_a_run_without_an_outcome_is_lost_and_one_that_is_not_there_leaves_its_partner_single():
    found = [row for row in rows([1.0, "", 3.0, 4.0], [5.0, 6.0, 7.0, ""]) if (row["group"], row["seed"]) != ("old", 2)]
    one = _paired(found)
    assert [(pair.replicate, pair.a, pair.b) for pair in one.pairs] == [(0, 1.0, 5.0)]
    assert [(half.replicate, half.failed_a, half.failed_b) for half in one.lost.replicates] == [
        (1, True, False),
        (3, False, True),
    ]
    assert one.single == ("2 of new",)


def test_a_failed_run_is_lost_also_without_a_run_of_the_other_group_unless_that_one_is_planned():
    found = rows([1.0, ""], [5.0, 6.0])[:3]
    one = _paired(found)
    assert (one.lost.a, one.lost.b, one.lost.cancelled, one.single) == (1, 0, (0, 1), ())
    assert [(half.a, half.b) for half in one.lost.replicates] == [(None, None)]
    assert not _paired(found, form=partial(pair_up, planned=True)).lost.replicates


@pytest.mark.parametrize("form", [pair_up, sampled])
def test_a_run_that_failed_in_a_task_is_lost_in_the_mean_also_without_runs_in_the_others(form):
    found = [
        *rows([4.0, ""], [0.0, 1.0], task="far"),
        *rows([1.0], [1.0], task="time"),
        {"group": "old", "seed": 1, "outcome": 2.0, "task": "time"},
    ]
    one = _paired(found, Contrast(a="new", b="old", task=MEAN), scales(1.0, ("far", "time")), form)
    assert (len(one.pairs), one.lost.a, one.lost.b) == (1, 1, 0)


def test_pairs_that_share_a_cluster_even_through_others_are_one():
    found = _in(rows([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]), "x", "", "y", "", "", "", "x", "y")
    one = _paired(found)
    assert [(pair.replicate, pair.a) for pair in one.pairs] == [(0, (1.0 + 2.0 + 4.0) / 3.0), (2, 3.0)]
    assert one.clusters == (("0", "1", "3"),)


@given(st.lists(st.tuples(*(st.sampled_from(["", "p", "q", "r", "s"]),) * 2), min_size=1, max_size=9))
def test_units_are_the_connected_sets_and_share_no_cluster(clusters):
    count = len(clusters)
    found = _in(rows([float(i) for i in range(count)], [0.0] * count), *(name for both in clusters for name in both))
    one = _paired(found)
    units = [set(map(int, unit)) for unit in one.clusters]
    units += [{place} for place in range(count) if not any(place in unit for unit in units)]
    assert len(units) == len(one.pairs)
    names = [{name for place in unit for name in clusters[place] if name} for unit in units]
    assert all(not (x & y) for i, x in enumerate(names) for y in names[:i])  # independent of one another
    for unit in units:  # and connected: none could be split
        reached = {min(unit)}
        names_seen = set()
        while True:
            names_seen |= {name for place in reached for name in clusters[place] if name}
            grown = {place for place in unit if place in reached or names_seen & set(clusters[place])}
            if grown == reached:
                break
            reached = grown
        assert reached == unit


def test_the_mean_over_tasks_counts_a_margin_of_each_alike_and_higher_is_better():
    found = [*rows([4.0], [0.0], task="far"), *rows([10.0], [13.0], task="time")]
    these = (*scales(2.0, ("far",)), *scales(3.0, ("time",), better="lower"))
    (pair,) = _paired(found, Contrast(a="new", b="old", task=MEAN), these).pairs
    assert pair.a - pair.b == pytest.approx((4.0 / 2.0 + 3.0 / 3.0) / 2.0)


def test_a_replicate_is_in_the_mean_only_with_all_tasks():
    found = [
        *rows([4.0, 1.0, ""], [0.0, 1.0, 2.0], task="far"),
        *rows([1.0], [1.0], task="time"),
        *rows([1.0], [1.0], task="time", first_seed=2),
    ]
    one = _paired(found, Contrast(a="new", b="old", task=MEAN), scales(1.0, ("far", "time")))
    assert [pair.replicate for pair in one.pairs] == [0]
    assert one.lost.a == 1


def test_runs_of_unknown_positions_count_as_first_and_second():
    one = _paired(rows([1.0, ""], [5.0, 6.0]))
    assert [(pair.position_a, pair.position_b) for pair in one.pairs] == [(0, 1)]
    assert [(half.position_a, half.position_b) for half in one.lost.replicates] == [(0, 1)]
