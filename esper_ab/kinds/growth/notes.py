"""Sentences of a plan that grows networks: on shaping, on small training budgets, and on the initial bias. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.wording import counted
from esper_ab.kinds.growth.policy_bias import UNIFORM, starts
from esper_ab.plan.budget import ENOUGH_EPISODES, enough_episodes
from esper_ab.plan.kind import NotesKind
from esper_ab.settings.experiment import ResolvedExperiment


class GrowthNotes(NotesKind):
    """Notes for growth."""

    def size(self, experiment: ResolvedExperiment) -> str:
        """Describe the training, with the slots, and the evaluation of one run."""
        return self.size_with(experiment, f", slots {', '.join(experiment.slots)}")

    def on_differences(self, experiment: ResolvedExperiment) -> Iterator[str]:
        """Yield a note for each group whose shaping discounts differently from its policy."""
        for group in experiment.groups:
            settings = group.settings
            if settings.learns and _has_potential(settings.reward) and settings.ppo.gamma != settings.reward.gamma:
                yield (
                    f"{group.name}: ppo.gamma={settings.ppo.gamma} differs from reward.gamma={settings.reward.gamma}, "
                    "so the potential-based shaping may change the optimal policy."
                )

    def on_learning(self, experiment: ResolvedExperiment) -> Iterator[str]:
        """Yield notes on small training budgets, and on the bias of an untrained policy."""
        learners = [group.name for group in experiment.groups if group.settings.learns]
        training_episodes = experiment.episodes * experiment.n_envs
        if len(learners) > 1 and training_episodes < ENOUGH_EPISODES and enough_episodes(experiment) is None:
            yield (
                f"budget: a run trains on {counted(training_episodes, 'episode')} (episodes x environments). On "
                f"digits, few pairs tell rewards apart only from {ENOUGH_EPISODES} on. At this budget you compare "
                f"early learning of {', '.join(learners)}; the ranking may change with longer training."
            )
        for start, names in starts(experiment.groups).items():
            if start != UNIFORM:
                yield (
                    f"start: the op head of {', '.join(names)} starts with the bias {start} (policy.bias_…), so an "
                    "untrained policy prefers actions with a positive bias over those with a negative one."
                )


def _has_potential(reward: RewardSettings) -> bool:
    """Whether the reward is a catalogue mode that adds potential-based shaping; the loss family adds none."""
    paid = reward.pbrs_weight != 0.0 and not reward.disable_pbrs
    return paid and reward.mode in ("shaped", "simplified") and reward.family == "contribution"


KIND = GrowthNotes()
