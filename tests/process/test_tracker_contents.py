"""Trackers with their real libraries, offline: their contents equal the journal."""

import pytest
from support.journals import ready_journals
from support.trackers import tracked_experiments
from support.trackers.tracked_experiments import SMALL, track, tracker_contents

from esper_ab.journal.fold import fold
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.trackers.numbers import episode_numbers, evaluation_numbers
from esper_ab.trackers.settings import NAMES

pytestmark = [
    pytest.mark.filterwarnings("ignore:::tensorboard", "ignore:::google"),
    pytest.mark.timeout(1800),
    pytest.mark.usefixtures("trackers_offline"),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Make a finished experiment with all trackers filled from its journal."""
    experiment_dir = ready_journals.write(tmp_path_factory.mktemp("filled") / "run", SMALL.events())
    progress = track(experiment_dir)
    assert {name: tracker["state"] for name, tracker in progress.items()} == dict.fromkeys(NAMES, "done")
    assert {tracker["lines"] for tracker in progress.values()} == {len(SMALL.events())}
    return experiment_dir


@pytest.fixture(scope="module")
def history():
    return fold(SMALL.events())


def test_wandb_contents_equal_the_journal(filled, history):
    runs = tracked_experiments.wandb_runs(filled)
    assert set(runs) == {*history.runs, "comparison"}
    for name, run in history.runs.items():
        stored = runs[name]
        assert (stored["project"], stored["group"]) == ("ab_test_synthetic_20260101", "synthetic")
        assert stored["tags"] == (run.ref.group_id,)
        assert stored["config"]["ppo"]["lr"] == run.spec.settings.ppo.lr
        assert stored["config"]["replicate"] == run.ref.replicate
        assert stored["history"] == {step: episode_numbers(record) for step, record in run.episodes.items()}
        expected = evaluation_numbers(history, name)
        assert {key: stored["summary"][key] for key in expected} == expected
        assert stored["exit"] == 0
    assert "shaped-simplified/verdict" in runs["comparison"]["summary"]


def test_tensorboard_contents_equal_the_journal(filled, history):
    runs = tracked_experiments.tensorboard_runs(filled)
    assert set(runs) == {*history.runs, "comparison"}
    for name, run in history.runs.items():
        scalars, texts, settings = runs[name]
        expected = {}
        for step, record in run.episodes.items():
            for key, value in episode_numbers(record).items():
                expected.setdefault(key, {})[step] = pytest.approx(value, rel=1e-6)  # 32 bits
        for key, value in evaluation_numbers(history, name).items():
            expected[key] = {run.spec.episodes: pytest.approx(value, rel=1e-6)}
        assert scalars == expected
        assert texts["digest"] == run.evaluation.digest
        assert settings["reward.mode"] == run.ref.reward_mode
    assert "shaped-simplified/sentence" in runs["comparison"][1]


@pytest.mark.slow
def test_tracking_an_experiment_twice_changes_no_entry(filled):
    contents = tracker_contents(filled)
    folders = sorted(path.name for path in (filled / "wandb").glob("offline-*"))
    track(filled)
    assert tracker_contents(filled) == contents
    assert sorted(path.name for path in (filled / "wandb").glob("offline-*")) == folders  # not rewritten


@pytest.mark.slow
def test_a_resumed_experiment_is_tracked_like_an_uninterrupted_one(filled, tmp_path):
    """Track an interrupted experiment, complete its journal, and track again with the stored settings."""
    events = SMALL.events()
    half_count = len(events) * 2 // 3
    experiment_dir = ready_journals.write(tmp_path / "run", events[:half_count])
    progress = track(experiment_dir)
    assert {tracker["lines"] for tracker in progress.values()} == {half_count}
    assert any(run["exit"] == 1 for run in tracked_experiments.wandb_runs(experiment_dir).values())
    (experiment_dir / JOURNAL_NAME).unlink()
    ready_journals.write(experiment_dir, events)
    track(experiment_dir, "--follow")  # without names, the trackers of the first call
    assert tracker_contents(experiment_dir) == tracker_contents(filled)
