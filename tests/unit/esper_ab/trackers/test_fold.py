"""What trackers are told, what is refused before anything starts, and the file that continues itself."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.journals.ready_journals import three_groups
from support.journals.synthetic import Synthetic

from esper_ab.commands._launch_flags import LaunchFlags
from esper_ab.commands._requested_campaign import tracking_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.records import PPOUpdate
from esper_ab.journal.events import EpisodeRecorded, Incident, RunEvaluated, RunStarted
from esper_ab.journal.fold import fold
from esper_ab.trackers.fold import Fold
from esper_ab.trackers.numbers import episode_numbers, evaluation_numbers, experiment_id, identity
from esper_ab.trackers.settings import NAMES, Tracking
from esper_ab.trackers.tracker import COMPARISON

FIRST = "2026-01-31T23:30:00.000+00:00"
SMALL = Synthetic(replicates=2, episodes=2, n_envs=2, steps=10, eval_episodes=2).events()
RECORD = next(event.record for event in SMALL if isinstance(event, EpisodeRecorded))


class Listener:
    """A tracker that writes down what it is told."""

    where = "here"

    def __init__(self):
        self.begun = {}
        self.logged = {}
        self.concluded = {}
        self.closed = 0

    def begin(self, subject):
        assert subject.key not in self.begun
        self.begun[subject.key] = subject

    def log(self, subject, step, numbers, at_ms):
        assert subject.key in self.begun
        assert subject.key not in self.concluded
        self.logged.setdefault(subject.key, {})[step] = numbers

    def conclude(self, subject, conclusion):
        assert subject.key in self.begun
        assert subject.key not in self.concluded
        self.concluded[subject.key] = conclusion

    def flush(self):
        pass

    def close(self):
        self.closed += 1


def listened(events, tracking=Tracking()):  # noqa: B008 frozen
    tracker = Listener()
    told = Fold(events[0], FIRST, tracking, tracker)
    for second, event in enumerate(events[1:]):
        told.add(event, f"2026-01-31T23:{31 + second // 60 % 20}:{second % 60:02}.000+00:00")
    told.finish()
    assert tracker.closed == 1
    return tracker


def test_every_run_is_told_once_with_every_episode_and_its_evaluation():
    events = three_groups()
    tracker = listened(events)
    history = fold(events)
    assert set(tracker.begun) == {*history.runs, COMPARISON}
    assert len({subject.id for subject in tracker.begun.values()}) == len(tracker.begun)
    for name, run in history.runs.items():
        assert tracker.logged[name] == {e: episode_numbers(record) for e, record in run.episodes.items()}
        assert tracker.concluded[name].numbers == evaluation_numbers(history, name)
        assert tracker.concluded[name].words["digest"] == run.evaluation.digest
    said = tracker.concluded[COMPARISON]
    assert said.words["shaped-simplified/verdict"] == "BETTER"
    assert said.numbers["shaped-simplified/low"] < said.numbers["shaped-simplified/estimate"]


def test_every_field_of_an_update_and_of_the_wall_time_is_among_the_numbers():
    numbers = episode_numbers(RECORD)
    for name in PPOUpdate.__struct_fields__:
        assert name == "heads" or numbers[f"ppo/{name}"] == float(getattr(RECORD.ppo, name))
    assert numbers["ppo/head/op/entropy"] == RECORD.ppo.heads["op"].entropy
    assert {f"time/{name}" for name in RECORD.timing.__struct_fields__} <= set(numbers)
    assert numbers["train/outcome"] == sum(env.outcome for env in RECORD.envs) / len(RECORD.envs)


def test_a_number_that_does_not_exist_is_left_out():
    failed = tuple(replace(env, measures=env.measures | {"val_loss": None}, reward_sum=None) for env in RECORD.envs)
    numbers = episode_numbers(replace(RECORD, envs=failed, ppo=None))
    assert not {"measure/val_loss", "train/reward"} & set(numbers)
    assert not any(name.startswith("ppo/") for name in numbers)


def test_a_lost_run_is_told_as_failed_and_an_unfinished_experiment_has_no_comparison():
    events = [event for event in SMALL if not isinstance(event, RunEvaluated)][:-1]
    lost = next(event.run.name for event in events if isinstance(event, RunStarted))
    tracker = listened([*events, Incident(category="dropped_pair", run_name=lost, episode=1, detail="its worker died")])
    assert tracker.concluded[lost].state == "failed"
    assert tracker.concluded[lost].words == {"lost": "its worker died"}
    assert set(tracker.concluded) == {lost}


def test_tags_are_those_of_the_variant_with_its_name_first():
    tracker = listened(SMALL, Tracking(tags={"shaped": ("old", "shaped"), "other": ("x",)}))
    assert tracker.begun["shaped/1"].tags == ("shaped", "old")
    assert tracker.begun["simplified/0"].tags == ("simplified",)


def test_ids_are_of_the_plan_and_its_first_time():
    assert experiment_id(SMALL[0], FIRST) == identity(SMALL[0].plan.digest, FIRST)
    assert experiment_id(SMALL[0], FIRST) != experiment_id(SMALL[0], FIRST.replace("23:30", "23:31"))
    assert identity("0f3c", FIRST) == "3efabe3dd15e2141"  # in every process, as hash() is not


# --- refused ---------------------------------------------------------------------------------------------------------


def tracked(track, wandb_mode=None):
    return tracking_of(LaunchFlags(track=track, wandb_mode=wandb_mode), Tracking())


@pytest.mark.parametrize("name", NAMES)
def test_an_absent_library_is_refused_with_the_extra_that_has_it(name, monkeypatch):
    assert tracked(name) != Tracking()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=rf"pip install 'esper-ab\[{name}\]'"):
        tracked(name)


def test_wandb_mode_is_the_flag_or_the_environment(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert (tracked("wandb").wandb, tracked("wandb", "online").wandb) == ("offline", "online")
    monkeypatch.delenv("WANDB_MODE")
    assert tracked("wandb").wandb == "online"


# --- a file that continues itself ------------------------------------------------------------------------------------


@given(pieces=st.lists(st.binary(min_size=1, max_size=6)), cut=st.integers(0, 40), torn=st.binary(max_size=5))
def test_whatever_was_there_the_file_becomes_what_is_written(pieces, cut, torn):
    """A prefix is what a killed process leaves; `torn` what a full disk may add to it."""
    from esper_ab.trackers.tensorboard_files import Continuing

    whole = b"".join(pieces)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "below" / "file"
        path.parent.mkdir()
        path.write_bytes(whole[:cut] + torn)
        file = Continuing(path.parent, path.name)
        for piece in pieces:
            file.write(piece)
        file.close(whole=True)
        assert path.read_bytes() == whole
