"""A power cut leaves any beginning of the journal: from every one of them the experiment comes to the same result."""

from __future__ import annotations

import shutil

import pytest
from support import fake_plans
from support.fault_checker import check

from esper_ab.analysis.trained_by import result_hash
from esper_ab.contracts.errors import UsageError
from esper_ab.control import experiment_run
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import fold
from esper_ab.launchers.inline import InlineLauncher

LAUNCHER = InlineLauncher("support.fake_worker:main_in_thread")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An experiment directory whose experiment is finished."""
    experiment_dir = tmp_path_factory.mktemp("whole") / "run"
    experiment_dir.mkdir()
    experiment_run.run(fake_plans.plan(episodes=2, seeds=2), experiment_dir, LAUNCHER, ())
    return experiment_dir


@pytest.fixture(scope="module")
def whole(finished):
    return (finished / JOURNAL_NAME).read_bytes()


def ends(journal):
    """Byte at which each line ends."""
    return [i + 1 for i, byte in enumerate(journal) if byte == ord("\n")]


@pytest.mark.slow  # from every line: tests/process/test_resume.py
def test_the_experiment_goes_on_from_every_line_and_the_bytes_beside_it(finished, whole, tmp_path):
    expected = result_hash(fold(read(finished / JOURNAL_NAME)))
    boundaries = ends(whole)
    sizes = sorted({size for end in boundaries for size in (end - 1, end, end + 1)} - {len(whole), len(whole) + 1})
    for size in sizes:
        experiment_dir = tmp_path / str(size)
        shutil.copytree(finished, experiment_dir)
        (experiment_dir / JOURNAL_NAME).write_bytes(whole[:size])
        if size < boundaries[0]:
            with pytest.raises(UsageError, match="no event"):
                experiment_run.resume(experiment_dir, LAUNCHER, ())
        else:
            experiment_run.resume(experiment_dir, LAUNCHER, ())
            check(experiment_dir, expected)
        shutil.rmtree(experiment_dir)
