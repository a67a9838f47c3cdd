"""How many episodes `--eval-episodes auto` means: from calibrations that ship or a user's own, never from the
experiment.

The calibrations that ship (eval_episodes.json, written by scripts/eval_episodes) rest on rng seeds that nothing else
uses. A number is chosen once per experiment, for all of its groups, before anything starts.
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
DEFAULT_EVAL_EPISODES = 16  # where there is no calibration
FARTHEST = 4.0  # times as many or as few training episodes as a calibration that ships had


class EvaluationNoise(Settings, frozen=True, kw_only=True):
    """Variances of outcomes, the budget they were measured at, and what an episode took there, in seconds."""

    components: Components
    episodes: int
    n_envs: int
    training_episode_s: float
    evaluation_episode_s: float

    def training(self, episodes: int, n_envs: int) -> float:
        """Return the cost of a run beside its sampled evaluation, in evaluation episodes, greedy ones included."""
        return episodes * n_envs * self.training_episode_s / self.evaluation_episode_s + greedy_episodes(n_envs, n_envs)

    def best(self, episodes: int, n_envs: int) -> int:
        """Return the episodes with the least variance x cost for runs of that budget: whole episodes."""
        return best_eval_episodes(self.components.ratio_high, self.training(episodes, n_envs), n_envs)

    @property
    def next_eval_episodes(self) -> int:
        """Return the episodes with the least variance x cost at its own budget."""
        return self.best(self.episodes, self.n_envs)

    def variance_times(self, eval_episodes: int) -> float:
        """Return the variance of an outcome over `eval_episodes` episodes, as a multiple of that measured.

        More episodes are promised no more than the lower limit of the noise's share gives them: an estimate without any
        policy variance would promise as little variance as one likes.
        """
        found = self.components
        share = min(found.share_low, 1.0)
        sure = 1.0 - share + share * found.eval_episodes / eval_episodes
        return max(sure, found.variance(eval_episodes) / found.variance(found.eval_episodes))

    def cost_times(self, eval_episodes: int) -> float:
        """Return the cost of a run with `eval_episodes` evaluation episodes, as a multiple of that measured."""
        training = self.training(self.episodes, self.n_envs)
        return (training + eval_episodes) / (training + self.components.eval_episodes)

    @property
    def cost_share(self) -> float:
        """Return the share of the sampled evaluation in what a run cost."""
        eval_episodes = self.components.eval_episodes
        return eval_episodes / (self.training(self.episodes, self.n_envs) + eval_episodes)


class Shipped(Settings, frozen=True, kw_only=True):
    """A calibration of a task, and how it was made."""

    task: str
    slots: tuple[str, ...]
    steps: int
    groups: str  # whose differences were measured: "shaped - simplified"
    noise: EvaluationNoise
    rng_seed: int  # used by nothing else
    kernel: str
    machine: str
    date: str


class EvalEpisodesChoice(Settings, frozen=True, kw_only=True):
    """How many episodes, and why, as the plan notes it; no reason where the number was asked for."""

    eval_episodes: int
    why: str = ""


_decode = msgspec.json.Decoder(tuple[Shipped, ...]).decode


@cache
def shipped() -> tuple[Shipped, ...]:
    """Return the calibrations that ship with this package."""
    return _decode(files("esper_ab.settings").joinpath(FILE).read_bytes())


def choose_eval_episodes(asked: AskedExperiment, own: EvaluationNoise | None = None) -> EvalEpisodesChoice:
    """Return the number of episodes of every evaluation; `own`: of a calibration that belongs to the experiment."""
    # as many as its evaluation returns, which its rehearsal finds out
    if asked.trainer and asked.eval_episodes == "auto":
        return EvalEpisodesChoice(eval_episodes=DEFAULT_EVAL_EPISODES)
    if asked.eval_episodes != "auto":
        return EvalEpisodesChoice(eval_episodes=asked.eval_episodes)
    if asked.outcome_over != "evaluation":
        return _choice(asked.n_envs, "the outcome is of training episodes")
    budget = f"{asked.episodes} x {asked.n_envs}"
    if own is not None:
        eval_episodes = own.best(asked.episodes, asked.n_envs)
        return _choice(eval_episodes, f"by --calibration, {_expected(own, eval_episodes)}")
    found = _nearest(asked)
    if found is None:
        return _choice(
            asked.n_envs * -(-DEFAULT_EVAL_EPISODES // asked.n_envs),
            f"the default of {DEFAULT_EVAL_EPISODES}, in whole turns of all environments: no calibration of "
            f"{asked.task} at "
            f"about {budget} training episodes of {asked.steps} steps ships; --calibration is one of your own",
        )
    noise, eval_episodes = found.noise, found.noise.best(asked.episodes, asked.n_envs)
    return _choice(
        eval_episodes, f"from {noise.components.runs} earlier pairs {found.groups} on {found.task} with "
                       f"{noise.episodes} x "
        f"{noise.n_envs} training episodes, of {found.date}; {_expected(noise, eval_episodes)}",
    )  # fmt: skip


def _choice(eval_episodes: int, why: str) -> EvalEpisodesChoice:
    return EvalEpisodesChoice(
        eval_episodes=eval_episodes,
        why=f"--eval-episodes auto: {counted(eval_episodes, 'episode')} of evaluation per run ({why}).",
    )


def _expected(noise: EvaluationNoise, eval_episodes: int) -> str:
    found = noise.components
    return (
        f"evaluation noise is then about {found.episode / eval_episodes / found.variance(eval_episodes):.0%} of the "
        f"variance of pairs"
    )


def _nearest(asked: AskedExperiment) -> Shipped | None:
    """Return the shipped calibration of the task, slots and steps with the nearest budget; None: none is near."""

    def distance(one: Shipped) -> float:
        times = one.noise.episodes * one.noise.n_envs / (asked.episodes * asked.n_envs)
        return max(times, 1.0 / times)

    same = [one for one in shipped() if (one.task, one.steps) == (asked.task, asked.steps)]
    alike = [one for one in same if asked.slots in ((), one.slots) and distance(one) <= FARTHEST]
    return min(alike, key=distance, default=None)
