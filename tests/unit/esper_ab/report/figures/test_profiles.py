"""The performance profiles of the groups of one task."""

import numpy as np
import pytest
from support.journals.ready_journals import one_replicate, three_groups

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.figures.profiles import profiles


def test_each_group_falls_from_nearly_all_runs_to_none_at_its_outcomes():
    found = content(fold(three_groups()))
    axes = profiles(found).figure.axes[0]
    assert len(axes.lines) == len(found.groups)
    for group, line in zip(found.groups, axes.lines, strict=True):
        runs = np.array([run.outcome for run in found.of_group(group)])
        thresholds, shares = line.get_data()
        assert shares == pytest.approx((runs > np.asarray(thresholds)[:, None]).mean(axis=1))


def test_groups_of_one_run_have_none():
    assert profiles(content(fold(one_replicate()))) is None
