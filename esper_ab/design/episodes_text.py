"""Evaluation noise in words, for a report and for `power`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.least_pairs import LEAST_PAIRS

if TYPE_CHECKING:
    from esper_ab.design.half_interval import HalfInterval  # with scipy, which `power --help` does not need


def share_text(noise: EvaluationNoise) -> str:
    """Return the share of evaluation noise in the variance of an outcome, with its confidence limits, in percent.

    The estimate is a ratio of variances and can exceed 1, so it is clamped to 100 %.
    """
    components = noise.components
    share = 100 * min(components.share, 1.0)
    low = 100 * min(components.share_low, 1.0)
    high = 100 * min(components.share_high, 1.0)
    return f"{share:.0f} % (80 % limits {low:.0f} to {high:.0f})"


def next_text(noise: EvaluationNoise) -> str:
    """Suggest the number of evaluation episodes for the next plan, and estimate the change in variance and cost."""
    eval_episodes = noise.next_eval_episodes
    if eval_episodes == noise.components.eval_episodes:
        return f"--eval-episodes {eval_episodes}, as used here, has the least variance x cost"
    variance = noise.variance_times(eval_episodes)
    cost = noise.cost_times(eval_episodes)
    adds_episodes = eval_episodes > noise.components.eval_episodes  # then the variance is an upper bound
    bound = "at most " if adds_episodes else ""
    pairs = _change(variance, "fewer", limit=adds_episodes)
    compute = _change(variance * cost, "less", limit=adds_episodes)
    verdict_words = f" (a verdict needs {LEAST_PAIRS})" if variance < 1.0 else ""
    return (
        f"--eval-episodes {eval_episodes}: {bound}{variance:.2f} times the variance at {cost:.2f} "
        f"times the cost of a run, so {pairs} pairs{verdict_words} and {compute} compute for the same precision"
    )


def half_text(half: HalfInterval, eval_episodes: int, pairs: int) -> str:
    """Say what takes the intervals to half their width; `eval_episodes`, `pairs`: those of this experiment."""
    plans = []
    if half.pairs is not None:
        least_words = f" (a verdict needs {LEAST_PAIRS})" if half.pairs < LEAST_PAIRS else ""
        plans.append(f"about {half.pairs} pairs{least_words} with {eval_episodes} evaluation episodes each")
    if half.cheapest_pairs is not None and half.cheapest_eval_episodes != eval_episodes:
        plans.append(f"about {half.cheapest_pairs} with {half.cheapest_eval_episodes}, at the least cost")
    if half.eval_episodes is not None:
        plans.append(f"about {half.eval_episodes} episodes with {pairs} pairs")
        return ", or ".join(plans)
    return "; ".join((", or ".join(plans), "more episodes alone do not suffice"))


def _change(times: float, smaller_words: str, *, limit: bool) -> str:
    """Return a factor as a change in percent; if `limit` is true, the factor is an upper bound."""
    percent = 100 * abs(1.0 - times)
    if times <= 1.0:
        bound = "at least " if limit else ""
        return f"{bound}{percent:.0f} % {smaller_words}"
    bound = "at most " if limit else ""
    return f"{bound}{percent:.0f} % more"
