"""Calls of trackers, refusals before the start, and continued files."""

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


class RecordingTracker:
    """A tracker that records its calls."""

    where = "here"

    def __init__(self):
        self.begun = {}
        self.logged = {}
        self.concluded = {}
        self.closed = 0

    def begin(self, subject):
        assert subject.key not in self.begun
        self.begun[subject.key] = subject

    def log(self, subject, step, numbers, time_ms):
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


def record_calls(events, tracking=Tracking()):  # noqa: B008 frozen
    tracker = RecordingTracker()
    folding = Fold(events[0], FIRST, tracking, tracker)
    for index, event in enumerate(events[1:]):
        folding.add(event, f"2026-01-31T23:{31 + index // 60 % 20}:{index % 60:02}.000+00:00")
    folding.finish()
    assert tracker.closed == 1
    return tracker


def test_a_tracker_receives_every_run_once():
    events = three_groups()
    tracker = record_calls(events)
    history = fold(events)
    assert set(tracker.begun) == {*history.runs, COMPARISON}
    assert len({subject.id for subject in tracker.begun.values()}) == len(tracker.begun)
    for name, run in history.runs.items():
        assert tracker.logged[name] == {e: episode_numbers(record) for e, record in run.episodes.items()}
        assert tracker.concluded[name].numbers == evaluation_numbers(history, name)
        assert tracker.concluded[name].words["digest"] == run.evaluation.digest
    conclusion = tracker.concluded[COMPARISON]
    assert conclusion.words["shaped-simplified/verdict"] == "BETTER"
    assert conclusion.numbers["shaped-simplified/low"] < conclusion.numbers["shaped-simplified/estimate"]


def test_tracked_numbers_include_every_field_of_an_update():
    numbers = episode_numbers(RECORD)
    for name in PPOUpdate.__struct_fields__:
        assert name == "heads" or numbers[f"ppo/{name}"] == float(getattr(RECORD.ppo, name))
    assert numbers["ppo/head/op/entropy"] == RECORD.ppo.heads["op"].entropy
    assert {f"time/{name}" for name in RECORD.timing.__struct_fields__} <= set(numbers)
    assert numbers["train/outcome"] == sum(env.outcome for env in RECORD.envs) / len(RECORD.envs)


def test_missing_numbers_are_not_tracked():
    failed_envs = tuple(
        replace(env, measures=env.measures | {"val_loss": None}, reward_sum=None) for env in RECORD.envs
    )
    numbers = episode_numbers(replace(RECORD, envs=failed_envs, ppo=None))
    assert not {"measure/val_loss", "train/reward"} & set(numbers)
    assert not any(name.startswith("ppo/") for name in numbers)


def test_a_lost_run_is_tracked_as_failed():
    events = [event for event in SMALL if not isinstance(event, RunEvaluated)][:-1]
    lost_run = next(event.run.name for event in events if isinstance(event, RunStarted))
    tracker = record_calls(
        [*events, Incident(category="dropped_pair", run_name=lost_run, episode=1, detail="its worker died")]
    )
    assert tracker.concluded[lost_run].state == "failed"
    assert tracker.concluded[lost_run].words == {"lost": "its worker died"}
    assert set(tracker.concluded) == {lost_run}


def test_the_tags_of_a_run_begin_with_the_name_of_its_variant():
    tracker = record_calls(SMALL, Tracking(tags={"shaped": ("old", "shaped"), "other": ("x",)}))
    assert tracker.begun["shaped/1"].tags == ("shaped", "old")
    assert tracker.begun["simplified/0"].tags == ("simplified",)


def test_the_id_of_an_experiment_follows_from_digest_and_start_time():
    assert experiment_id(SMALL[0], FIRST) == identity(SMALL[0].plan.digest, FIRST)
    assert experiment_id(SMALL[0], FIRST) != experiment_id(SMALL[0], FIRST.replace("23:30", "23:31"))
    assert identity("0f3c", FIRST) == "3efabe3dd15e2141"  # the same in every process, unlike hash()


# --- refused ---------------------------------------------------------------------------------------------------------


def tracking_of_flags(track, wandb_mode=None):
    return tracking_of(LaunchFlags(track=track, wandb_mode=wandb_mode), Tracking())


@pytest.mark.parametrize("name", NAMES)
def test_the_refusal_of_a_missing_tracker_library_names_the_extra(name, monkeypatch):
    assert tracking_of_flags(name) != Tracking()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=rf"pip install 'esper-ab\[{name}\]'"):
        tracking_of_flags(name)


def test_the_wandb_mode_comes_from_the_flag_or_the_environment(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert (tracking_of_flags("wandb").wandb, tracking_of_flags("wandb", "online").wandb) == ("offline", "online")
    monkeypatch.delenv("WANDB_MODE")
    assert tracking_of_flags("wandb").wandb == "online"


# --- a file that is continued -----------------------------------------------------------------------------------------


@given(
    pieces=st.lists(st.binary(min_size=1, max_size=6)), cut_byte=st.integers(0, 40), torn_bytes=st.binary(max_size=5)
)
def test_a_continued_event_file_has_exactly_the_written_bytes(pieces, cut_byte, torn_bytes):
    """A killed process leaves a prefix, to which a full disk may add `torn_bytes`."""
    from esper_ab.trackers.tensorboard_files import Continuing

    whole = b"".join(pieces)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "below" / "file"
        path.parent.mkdir()
        path.write_bytes(whole[:cut_byte] + torn_bytes)
        file = Continuing(path.parent, path.name)
        for piece in pieces:
            file.write(piece)
        file.close(truncates=True)
        assert path.read_bytes() == whole
