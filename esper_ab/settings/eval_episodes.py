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
        trained = episodes * n_envs * self.training_episode_s / self.evaluation_episode_s
        return trained + greedy_episodes(n_envs, n_envs)

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
        measured = self.components
        share = min(measured.share_low, 1.0)
        certain = 1.0 - share + share * measured.eval_episodes / eval_episodes
        return max(certain, measured.variance(eval_episodes) / measured.variance(measured.eval_episodes))

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


def choose_eval_episodes(asked: AskedExperiment, own: EvaluationNoise | None = None) -> EvalEpisodesChoice:
    """Choose the number of episodes of every evaluation.

    `own` is the noise in the user's calibration, if there is one.
    """
    # How often a trainer is evaluated is known from its rehearsal.
    if asked.trainer and asked.eval_episodes == "auto":
        return EvalEpisodesChoice(eval_episodes=DEFAULT_EVAL_EPISODES)
    if asked.eval_episodes != "auto":
        return EvalEpisodesChoice(eval_episodes=asked.eval_episodes)
    if asked.outcome_over != "evaluation":
        return _choice(asked.n_envs, "the outcome is measured on training episodes")
    if own is not None:
        eval_episodes = own.best(asked.episodes, asked.n_envs)
        measured = own.components
        share = measured.episode / eval_episodes / measured.variance(eval_episodes)
        why = f"by --calibration; evaluation noise is then about {share:.0%} of the variance of pairs"
        return _choice(eval_episodes, why)
    return _choice(
        asked.n_envs * -(-DEFAULT_EVAL_EPISODES // asked.n_envs),
        f"the default of {DEFAULT_EVAL_EPISODES}, rounded up to a multiple of the environments; `esper-ab calibrate` "
        f"finds a better number for {asked.task} with about {asked.episodes} x {asked.n_envs} training episodes of "
        f"{asked.steps} steps",
    )


def _choice(eval_episodes: int, why: str) -> EvalEpisodesChoice:
    return EvalEpisodesChoice(
        eval_episodes=eval_episodes,
        why=f"--eval-episodes auto: {counted(eval_episodes, 'evaluation episode')} per run ({why}).",
    )
