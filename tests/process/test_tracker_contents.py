"""Trackers with their real libraries, offline, filled from a journal: what they hold is the journal."""

import pytest
from support import journals, tracked
from support.tracked import SMALL, held, track

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
    """A finished run, and all trackers filled from its journal."""
    experiment_dir = journals.write(tmp_path_factory.mktemp("filled") / "run", SMALL.events())
    said = track(experiment_dir)
    assert {name: one["state"] for name, one in said.items()} == dict.fromkeys(NAMES, "done")
    assert {one["lines"] for one in said.values()} == {len(SMALL.events())}
    return experiment_dir


@pytest.fixture(scope="module")
def history():
    return fold(SMALL.events())


def test_wandb_holds_the_journal(filled, history):
    runs = tracked.wandb_runs(filled)
    assert set(runs) == {*history.runs, "comparison"}
    for name, run in history.runs.items():
        there = runs[name]
        assert (there["project"], there["group"]) == ("ab_test_synthetic_20260101", "synthetic")
        assert there["tags"] == (run.ref.group_id,)
        assert there["config"]["ppo"]["lr"] == run.spec.settings.ppo.lr
        assert there["config"]["replicate"] == run.ref.replicate
        assert there["history"] == {step: episode_numbers(record) for step, record in run.episodes.items()}
        expected = evaluation_numbers(history, name)
        assert {key: there["summary"][key] for key in expected} == expected
        assert there["exit"] == 0
    assert "shaped-simplified/verdict" in runs["comparison"]["summary"]


def test_tensorboard_holds_the_journal(filled, history):
    runs = tracked.tensorboard_runs(filled)
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
def test_twice_is_once(filled):
    before = held(filled)
    folders = sorted(path.name for path in (filled / "wandb").glob("offline-*"))
    track(filled)
    assert held(filled) == before
    assert sorted(path.name for path in (filled / "wandb").glob("offline-*")) == folders  # not written anew


@pytest.mark.slow
def test_a_run_that_stopped_and_went_on_is_held_as_if_it_had_not(filled, tmp_path):
    """Stopped in the second block, filled, gone on with, filled again by what was remembered."""
    events = SMALL.events()
    half = len(events) * 2 // 3
    experiment_dir = journals.write(tmp_path / "run", events[:half])
    said = track(experiment_dir)
    assert {one["lines"] for one in said.values()} == {half}
    assert any(run["exit"] == 1 for run in tracked.wandb_runs(experiment_dir).values())
    (experiment_dir / JOURNAL_NAME).unlink()
    journals.write(experiment_dir, events)
    track(experiment_dir, "--follow")  # no tracker is named: those of the first time
    assert held(experiment_dir) == held(filled)
