"""Evaluation noise, and the number of hosts with the least variance x cost. Light: a plan needs no numpy or scipy.

An endpoint over m hosts has the variance P + H / m, P that of the policies, H that of one host under one policy; the
same holds of the difference of a pair. A run costs T + m, in evaluation hosts. As many pairs as reach a given precision
cost (P + H / m) (T + m) each, which is least at m = sqrt(T H / P). Half or twice as many cost an eighth more at most.
"""

from __future__ import annotations

import math

import msgspec

_MOST_PER_TRAINING = 4.0  # without any policy variance, that many hosts come within a quarter of infinitely many


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Variances in squared units, of runs or of the differences of pairs; limits leave out 10 % on either side."""

    runs: int  # or pairs
    hosts: int  # of each
    policy: float  # between runs beyond their hosts; unbiased, so it may be negative
    host: float  # of one host within a run, above 0
    share: float  # of evaluation noise in the variance of an endpoint; above 1 where `policy` is negative
    share_low: float
    share_high: float
    ratio_high: float  # policy / host, upper 80 % limit; 0 or less where runs hardly differ beside their hosts

    def variance(self, hosts: float) -> float:
        """Return the variance of an endpoint over `hosts` hosts; a negative policy variance counts as none."""
        return max(self.policy, 0.0) + self.host / hosts


def variance_times_cost(hosts: float, ratio: float, training: float) -> float:
    """Variance x cost of `hosts` hosts, in units of H; `ratio` is P / H, `training` is T, in evaluation hosts."""
    return (max(ratio, 0.0) + 1.0 / hosts) * (training + hosts)


def most_hosts(training: float, step: int) -> int:
    """Return the most hosts that are ever chosen: a multiple of `step` that costs four times the training, or one."""
    return step * max(1, math.floor(_MOST_PER_TRAINING * training / step))


def best_hosts(ratio: float, training: float, step: int) -> int:
    """Return the multiple of `step` with the least variance x cost, up to `most_hosts`.

    `ratio` of 0 or less: there is no policy variance, and more hosts are always better.
    """
    most = most_hosts(training, step)
    ideal = math.sqrt(training / ratio) if ratio > 0.0 else math.inf
    below = step * max(1, math.floor(min(ideal, most) / step))
    return min((below, min(below + step, most)), key=lambda hosts: variance_times_cost(hosts, ratio, training))
