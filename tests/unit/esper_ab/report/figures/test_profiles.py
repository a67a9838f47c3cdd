"""The performance profiles of the groups of one task."""

import numpy as np
import pytest
from support.journals.ready_journals import one_replicate, three_groups

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.figures.profiles import profiles


def test_each_profile_shows_the_share_of_runs_above_each_threshold():
    report_content = content(fold(three_groups()))
    axes = profiles(report_content).figure.axes[0]
    assert len(axes.lines) == len(report_content.groups)
    for group, line in zip(report_content.groups, axes.lines, strict=True):
        runs = np.array([run.outcome for run in report_content.of_group(group)])
        thresholds, shares = line.get_data()
        assert shares == pytest.approx((runs > np.asarray(thresholds)[:, None]).mean(axis=1))


def test_groups_with_only_one_run_have_no_profiles():
    assert profiles(content(fold(one_replicate()))) is None
