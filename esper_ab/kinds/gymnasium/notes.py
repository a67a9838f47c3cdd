"""Sentences of a plan in Gymnasium environments: on actions, and on what groups learn from. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.contracts.kinds_of_task import ENV_REWARD
from esper_ab.contracts.machine import Machine
from esper_ab.plan.kind import NotesKind
from esper_ab.settings.experiment import ResolvedExperiment

_WIDEST_ACTIONS = 10.0  # half-width of bounds that actions with a standard deviation of 1 still explore
_FEW = 4  # action dimensions named in a sentence


class GymnasiumNotes(NotesKind):
    """Notes for Gymnasium."""

    def size(self, experiment: ResolvedExperiment) -> str:
        """Describe the training, with its environment steps, and the evaluation of one run."""
        total = f"{experiment.episodes * experiment.steps * experiment.n_envs:,} environment steps per run"
        if any(group.settings.gym.rollout == "episodes" for group in experiment.groups):
            total = f"at most {total}"
        return self.size_with(experiment, f", {total}")

    def on_environments(self, experiment: ResolvedExperiment, machine: Machine) -> Iterator[str]:
        """Yield a note on action bounds that do not fit a policy's initial distribution."""
        if any(group.settings.has_policy for group in experiment.groups):
            yield from _note_action_bounds(machine.task(experiment.task).action_bounds)

    def on_learning(self, experiment: ResolvedExperiment) -> Iterator[str]:
        """Yield a note if only some groups train on the outcome itself."""
        learners = [group for group in experiment.groups if group.settings.has_policy]
        env_groups = [group.name for group in learners if group.settings.reward.mode == ENV_REWARD]
        if env_groups and len(env_groups) < len(learners) and not experiment.outcome:
            yield (
                f"The outcome is also the reward of {', '.join(env_groups)} ({ENV_REWARD}), but not of the other "
                "learners, "
                "so the question is whether another reward leads to a better outcome."
            )


def _note_action_bounds(bounds: Sequence[tuple[float, float] | None]) -> Iterator[str]:
    misfits = []
    for dimension, limits in enumerate(bounds):
        if limits is None:
            continue
        low, high = limits
        if low > -1.0 or high < 1.0 or high - low > 2.0 * _WIDEST_ACTIONS:
            misfits.append(f"{dimension} ({low:g} to {high:g})")
    if misfits:
        rest_words = f" and {len(misfits) - _FEW} more" if len(misfits) > _FEW else ""
        yield (
            f"Action bounds: {', '.join(misfits[:_FEW])}{rest_words} do not fit a new policy, whose actions are "
            "normal "
            "with mean 0 and standard deviation 1, clipped to the bounds. Such a policy may always act at a bound, or "
            "explore little of the range, and not learn. In your own make function, return "
            "gymnasium.wrappers.RescaleAction(env, -1.0, 1.0)."
        )


KIND = GymnasiumNotes()
