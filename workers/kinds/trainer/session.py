"""The common part of runs of the user's own training: Python trainers (`python_session`), commands (`command_session`).

A worker that only guards a command imports no torch, so nothing here does.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import SettingName, UserCodeFailed
from esper_ab.contracts.marked_settings import in_every_door
from esper_ab.contracts.measures import LARGEST_OUTCOME, countable
from esper_ab.contracts.records import (
    EnvEpisode,
    EpisodeRecord,
    EvaluatedEpisode,
    EvaluationRecord,
    Timing,
)
from esper_ab.contracts.rng import run_path
from esper_ab.contracts.worker_order import RunSpec
from workers.environments import OnStep
from workers.storage import durable

STATE_FORMAT = 2


class SavedState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint has."""

    format: int
    point: int  # number of points done
    state: bytes  # after these points


_decode = msgspec.msgpack.Decoder(SavedState).decode


class TrainerSession(ABC):
    """A run of a trainer or command: its records, state and the file of the last state."""

    def __init__(self, spec: RunSpec, experiment_dir: Path) -> None:
        assert spec.trainer is not None, "the run has a trainer"
        self.spec = spec
        self.order = spec.trainer
        self.root = experiment_dir
        self.path = run_path(spec.rng_seed, spec.ref.replicate, spec.rng_label) / "trainer"
        self.point = 0  # number of points done
        self.done: bytes | None = None  # the state after these points

    @abstractmethod
    def train(self, episode: int, on_step: OnStep, on_update: OnStep) -> EpisodeRecord:
        """Train to the end of point `episode`."""

    @abstractmethod
    def _outcomes(self, done_state: bytes, on_step: OnStep) -> list[float]:
        """Return the outcomes of the state after the last point."""

    def evaluate(self, experiment_dir: Path, on_step: OnStep) -> EvaluationRecord:
        """Save the state after the last point, then evaluate it.

        If the state cannot be saved, OSError is raised before anything else happens, and the call may be repeated.
        """
        assert self.done is not None, "the last point is done"
        begin_s = time.perf_counter()
        sha256 = durable.write(experiment_dir, self.spec.policy_file, self.done)
        empty_metrics: dict[str, float | None] = dict.fromkeys(self.order.metrics.values())
        ends = tuple(self._end(outcome, empty_metrics) for outcome in self._outcomes(self.done, on_step))
        return EvaluationRecord(
            run=self.spec.ref,
            policy_file=self.spec.policy_file,
            policy_sha256=sha256,
            timing=_timing(begin_s),
            digest=_digest(ends),
            episodes=tuple(
                EvaluatedEpisode(episode=episode, actions="sampled", result=end, rewards={})
                for episode, end in enumerate(ends)
            ),
        )

    @property
    def stateless(self) -> bool:
        """False, because a trainer's progress is only in its checkpoint; without a checkpoint, the run starts over."""
        return False

    def warm_up(self, on_step: OnStep) -> float:
        """Do nothing: a trainer does its own warm-up before its first point."""
        on_step(0)
        return 0.0

    def checkpoint(self) -> bytes | None:
        """Return the state as bytes; None during a run that cannot resume and would start over."""
        at_the_end = self.point == self.spec.episodes
        if self.done is None or not (self.order.resumes or at_the_end):
            return None
        return msgspec.msgpack.encode(SavedState(format=STATE_FORMAT, point=self.point, state=self.done))

    def resume_from(self, data: bytes) -> None:
        """Continue like the session whose `checkpoint` returned `data`.

        Raises an error of `durable.FOREIGN` for other bytes. After an error, the session is unchanged.
        """
        saved_state = _decode(data)
        if saved_state.format != STATE_FORMAT:
            raise ValueError(f"format {saved_state.format}, expected {STATE_FORMAT}")
        self._restore_point(saved_state.point, saved_state.state)
        self.point = saved_state.point
        self.done = saved_state.state

    @abstractmethod
    def _restore_point(self, point: int, done_state: bytes) -> None:
        """Make the training continue at `point` from the state `done_state`; an error leaves the session unchanged."""

    def _end(self, outcome: float, measures: dict[str, float | None]) -> EnvEpisode:
        """Return the record of an outcome; if the outcome is not finite, it is replaced by the worst outcome."""
        has_failed = not countable(outcome)
        if has_failed:
            if self.order.worst is None:
                raise UserCodeFailed(
                    f"the outcome is {outcome}, not a number from -{LARGEST_OUTCOME:g} to {LARGEST_OUTCOME:g}; "
                    f"to count such an outcome as the worse end of a range, set "
                    f"{in_every_door(SettingName('outcome_range', 'LOW..HIGH'))}"
                )
            outcome = self.order.worst
        return EnvEpisode(
            env=0,
            device=self.spec.env_devices[0],
            steps=1,
            outcome=outcome,
            reward_sum=None,
            failed=has_failed,
            measures=measures,
        )

    def _record(self, episode: int, outcome: float, measures: dict[str, float], begin_s: float) -> EpisodeRecord:
        recorded_metrics: dict[str, float | None] = {}
        for metric, name in self.order.metrics.items():
            value = measures[metric]
            recorded_metrics[name] = value if countable(value) else None
        envs = (self._end(outcome, recorded_metrics),)
        return EpisodeRecord(
            run=self.spec.ref,
            episode=episode,
            envs=envs,
            ppo=None,
            seed_events=(),
            timing=_timing(begin_s),
            digest=_digest(envs),
        )


def _timing(begin_s: float) -> Timing:
    total_s = round(time.perf_counter() - begin_s, 3)
    return Timing(total_s=total_s, train_s=total_s, validate_s=0.0, decide_s=0.0, update_s=0.0)


def _digest(ends: tuple[EnvEpisode, ...]) -> str:
    """Return a sha256 that is equal for groups with equal settings if the trainer is reproducible."""
    facts = [msgspec.structs.replace(end, device="") for end in ends]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()
