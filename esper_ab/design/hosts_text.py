"""Evaluation noise in words, as a report and `power` say it. Pure."""

from __future__ import annotations

from esper_ab.settings.eval_hosts import EvaluationNoise


def share_text(noise: EvaluationNoise) -> str:
    """Return the share of evaluation noise in the variance of an endpoint, with its limits, in percent."""
    found = noise.components
    limits = f"{100 * found.share_low:.0f} to {100 * found.share_high:.0f}"
    return f"{100 * found.share:.0f} % (80 % limits {limits})"


def next_text(noise: EvaluationNoise) -> str:
    """Return the number of evaluation episodes for the next plan and what it would change, from this estimate."""
    hosts = noise.next_hosts
    if hosts == noise.components.hosts:
        return f"--eval-hosts {hosts}, as here, has the least variance x cost"
    variance, cost = noise.variance_times(hosts), noise.cost_times(hosts)
    return (
        f"--eval-hosts {hosts}: {variance:.2f} times the variance at {cost:.2f} times the cost of a run, so "
        f"{_change(variance, 'fewer')} pairs and {_change(variance * cost, 'less')} compute for the same precision"
    )


def _change(times: float, smaller: str) -> str:
    return f"{100 * abs(1.0 - times):.0f} % {smaller if times <= 1.0 else 'more'}"
