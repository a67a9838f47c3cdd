"""Choose the number of evaluation episodes for `--eval-episodes auto` from a calibration, never from the experiment.

The number is chosen once per experiment, before the first run, and is the same for all groups.
"""

from __future__ import annotations

from esper_ab.contracts.evaluation import greedy_episodes
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.wording import counted
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.stats.evaluation_noise import Components, best_eval_episodes

DEFAULT_EVAL_EPISODES = 16  # without a calibration


class EvaluationNoise(Settings, frozen=True, kw_only=True):
    """Variances of outcomes, the training budget at which they were measured, and the seconds per episode."""

    components: Components
    episodes: int
    n_envs: int
    training_episode_s: float
    evaluation_episode_s: float

    def training(self, episodes: int, n_envs: int) -> float:
        """Return the cost of a run without its sampled evaluation, in units of one evaluation episode.

        The greedy evaluation episodes are included.
        """
        training_worth = episodes * n_envs * self.training_episode_s / self.evaluation_episode_s
        return training_worth + greedy_episodes(n_envs, n_envs)

    def best(self, episodes: int, n_envs: int) -> int:
        """Return the number of evaluation episodes with the least variance x cost for runs of this training budget."""
        return best_eval_episodes(self.components.ratio_high, self.training(episodes, n_envs), n_envs)

    @property
    def next_eval_episodes(self) -> int:
        """The number of evaluation episodes with the least variance x cost at the measured training budget."""
        return self.best(self.episodes, self.n_envs)

    def variance_times(self, eval_episodes: int) -> float:
        """Return the variance of an outcome over `eval_episodes` episodes, as a multiple of the measured variance.

        For more episodes than measured, the reduction is limited by the lower confidence limit of the noise share.
        Without this limit, an estimate of zero policy variance would promise an unlimited reduction.
        """
        noise = self.components
        share = min(noise.share_low, 1.0)
        constant_share = 1.0 - share + share * noise.eval_episodes / eval_episodes
        return max(constant_share, noise.variance(eval_episodes) / noise.variance(noise.eval_episodes))

    def cost_times(self, eval_episodes: int) -> float:
        """Return the cost of a run with `eval_episodes` evaluation episodes, as a multiple of the measured cost."""
        training = self.training(self.episodes, self.n_envs)
        return (training + eval_episodes) / (training + self.components.eval_episodes)

    @property
    def cost_share(self) -> float:
        """The share of the sampled evaluation in the cost of a run."""
        eval_episodes = self.components.eval_episodes
        return eval_episodes / (self.training(self.episodes, self.n_envs) + eval_episodes)


class EvalEpisodesChoice(Settings, frozen=True, kw_only=True):
    """The number of evaluation episodes, and the reason as a note for the plan ("" if the user gave the number)."""

    eval_episodes: int
    why: str = ""


def choose_eval_episodes(
    asked_experiment: AskedExperiment, own_noise: EvaluationNoise | None = None
) -> EvalEpisodesChoice:
    """Choose the number of episodes of every evaluation.

    `own_noise` is the noise in the user's calibration, if there is one.
    """
    # How often a trainer is evaluated is known from its rehearsal.
    if asked_experiment.trainer and asked_experiment.eval_episodes == "auto":
        return EvalEpisodesChoice(eval_episodes=DEFAULT_EVAL_EPISODES)
    if asked_experiment.eval_episodes != "auto":
        return EvalEpisodesChoice(eval_episodes=asked_experiment.eval_episodes)
    if asked_experiment.outcome_over != "evaluation":
        return _choice(asked_experiment.n_envs, "the outcome is measured on training episodes")
    if own_noise is not None:
        eval_episodes = own_noise.best(asked_experiment.episodes, asked_experiment.n_envs)
        noise = own_noise.components
        share = noise.episode / eval_episodes / noise.variance(eval_episodes)
        reason = f"by --calibration; evaluation noise is then about {100 * share:.0f} % of the variance of pairs"
        return _choice(eval_episodes, reason)
    return _choice(
        asked_experiment.n_envs * -(-DEFAULT_EVAL_EPISODES // asked_experiment.n_envs),
        f"the default of {DEFAULT_EVAL_EPISODES}, rounded up to a multiple of the environments; `esper-ab calibrate` "
        f"finds a better number for {asked_experiment.task} with about {asked_experiment.episodes} x "
        f"{asked_experiment.n_envs} training episodes of "
        f"{asked_experiment.steps} steps",
    )


def _choice(eval_episodes: int, reason: str) -> EvalEpisodesChoice:
    return EvalEpisodesChoice(
        eval_episodes=eval_episodes,
        why=f"--eval-episodes auto: {counted(eval_episodes, 'evaluation episode')} per run ({reason}).",
    )
