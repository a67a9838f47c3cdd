"""Choose the number of evaluation episodes for `--eval-episodes auto` from calibrations, never from the experiment.

The calibrations in the package (eval_episodes.json, written by scripts/eval_episodes) use rng seeds that nothing else
uses. The number is chosen once per experiment, before the first run, and is the same for all groups.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from esper_ab.contracts.measures import greedy_episodes
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.wording import counted
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.stats.evaluation_noise import Components, best_eval_episodes

FILE = "eval_episodes.json"
DEFAULT_EVAL_EPISODES = 16  # without a calibration
FARTHEST = 4.0  # largest factor between the training episodes of an experiment and of a calibration in the package


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
        return episodes * n_envs * self.training_episode_s / self.evaluation_episode_s + greedy_episodes(n_envs, n_envs)

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
        found = self.components
        share = min(found.share_low, 1.0)
        sure = 1.0 - share + share * found.eval_episodes / eval_episodes
        return max(sure, found.variance(eval_episodes) / found.variance(found.eval_episodes))

    def cost_times(self, eval_episodes: int) -> float:
        """Return the cost of a run with `eval_episodes` evaluation episodes, as a multiple of the measured cost."""
        training = self.training(self.episodes, self.n_envs)
        return (training + eval_episodes) / (training + self.components.eval_episodes)

    @property
    def cost_share(self) -> float:
        """The share of the sampled evaluation in the cost of a run."""
        eval_episodes = self.components.eval_episodes
        return eval_episodes / (self.training(self.episodes, self.n_envs) + eval_episodes)


class Shipped(Settings, frozen=True, kw_only=True):
    """A task's calibration that ships with the package, with the calibration's date, groups and rng seed."""

    task: str
    slots: tuple[str, ...]
    steps: int
    groups: str  # whose differences were measured: "shaped - simplified"
    noise: EvaluationNoise
    rng_seed: int  # which nothing else uses
    kernel: str
    machine: str
    date: str


class EvalEpisodesChoice(Settings, frozen=True, kw_only=True):
    """The number of evaluation episodes, and the reason as a note for the plan ("" if the user gave the number)."""

    eval_episodes: int
    why: str = ""


_decode = msgspec.json.Decoder(tuple[Shipped, ...]).decode


@cache
def shipped() -> tuple[Shipped, ...]:
    """Return the calibrations in this package."""
    return _decode(files("esper_ab.settings").joinpath(FILE).read_bytes())


def choose_eval_episodes(asked: AskedExperiment, own: EvaluationNoise | None = None) -> EvalEpisodesChoice:
    """Choose the number of episodes of every evaluation.

    `own` is the noise in the user's calibration, if there is one; this noise takes precedence over the package's.
    """
    # How often a trainer is evaluated is known from its rehearsal.
    if asked.trainer and asked.eval_episodes == "auto":
        return EvalEpisodesChoice(eval_episodes=DEFAULT_EVAL_EPISODES)
    if asked.eval_episodes != "auto":
        return EvalEpisodesChoice(eval_episodes=asked.eval_episodes)
    if asked.outcome_over != "evaluation":
        return _choice(asked.n_envs, "the outcome is measured on training episodes")
    budget = f"{asked.episodes} x {asked.n_envs}"
    if own is not None:
        eval_episodes = own.best(asked.episodes, asked.n_envs)
        return _choice(eval_episodes, f"by --calibration, {_expected(own, eval_episodes)}")
    found = _nearest(asked)
    if found is None:
        return _choice(
            asked.n_envs * -(-DEFAULT_EVAL_EPISODES // asked.n_envs),
            f"the default of {DEFAULT_EVAL_EPISODES}, rounded up to a multiple of the environments; `esper-ab "
            f"calibrate` finds a better number for "
            f"{asked.task} with about {budget} training episodes of {asked.steps} steps",
        )
    noise, eval_episodes = found.noise, found.noise.best(asked.episodes, asked.n_envs)
    return _choice(
        eval_episodes, f"from {noise.components.runs} earlier pairs ({found.groups}) on {found.task} with "
                       f"{noise.episodes} x "
        f"{noise.n_envs} training episodes, measured on {found.date}; {_expected(noise, eval_episodes)}",
    )  # fmt: skip


def _choice(eval_episodes: int, why: str) -> EvalEpisodesChoice:
    return EvalEpisodesChoice(
        eval_episodes=eval_episodes,
        why=f"--eval-episodes auto: {counted(eval_episodes, 'evaluation episode')} per run ({why}).",
    )


def _expected(noise: EvaluationNoise, eval_episodes: int) -> str:
    found = noise.components
    return (
        f"evaluation noise is then about {found.episode / eval_episodes / found.variance(eval_episodes):.0%} of the "
        f"variance of pairs"
    )


def _nearest(asked: AskedExperiment) -> Shipped | None:
    """Return the package's calibration of this task, slots and steps with the nearest budget; None if none is near."""

    def distance(one: Shipped) -> float:
        times = one.noise.episodes * one.noise.n_envs / (asked.episodes * asked.n_envs)
        return max(times, 1.0 / times)

    same = [one for one in shipped() if (one.task, one.steps) == (asked.task, asked.steps)]
    alike = [one for one in same if asked.slots in ((), one.slots) and distance(one) <= FARTHEST]
    return min(alike, key=distance, default=None)
