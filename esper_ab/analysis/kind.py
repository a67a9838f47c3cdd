"""What an analysis adds for one kind of task. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from esper_ab.analysis.observe import ComparedPairs
from esper_ab.contracts.kinds_of_task import Concern
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.wording import counted
from esper_ab.journal.fold import History
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.verdict.finding import Finding


class FindingsKind(Concern):
    """Base of the additional analyses of a kind of task; the defaults add nothing."""

    file = "findings"
    # Groups with this controller learn nothing and are the baseline of all comparisons without one; "": there is none.
    baseline_controller = ""
    baseline_words = ""  # what such a group does: "acts at random"
    compares_own_rewards = False  # whether a group's own reward is a question of its own, beside the outcome

    def findings(self, history: History, pairs: ComparedPairs) -> Iterable[Finding]:
        """Return findings for the audit; `pairs`: the pairs of every comparison."""
        return ()

    def budget(self, experiment: ResolvedExperiment) -> str:
        """Describe a run's training budget, which every verdict is conditional on."""
        episode_words = counted(experiment.episodes, "episode")
        steps = counted(experiment.steps, "step")
        return f"{episode_words} of {steps} in {counted(experiment.n_envs, 'environment')}"

    def equal_steps(self, settings: GroupSettings) -> str:
        """Return the setting that gives equally many steps; "" unless the policy of `settings` ends its episodes."""
        return ""

    def scope(self, history: History) -> str:
        """Describe what a verdict is conditional on besides task, budget and PPO; "" if nothing."""
        return ""
