"""How many hosts `--eval-hosts auto` means: from calibrations that ship or a user's own, never from the experiment.

The calibrations that ship (eval_hosts.json, written by scripts/eval_hosts) rest on rng seeds that nothing else uses. A
number is chosen once per experiment, for all of its groups, before anything starts.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from esper_ab.contracts.evaluation import greedy_hosts
from esper_ab.contracts.settings import Settings
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.stats.evaluation_noise import Components, best_hosts
from esper_ab.stats.text import counted

FILE = "eval_hosts.json"
DEFAULT_HOSTS = 16  # where there is no calibration
FARTHEST = 4.0  # times as many or as few training hosts as a calibration that ships had


class EvaluationNoise(Settings, frozen=True, kw_only=True):
    """Variances of endpoints, the budget they were measured at, and what a host took there, in seconds."""

    components: Components
    episodes: int
    n_envs: int
    training_host_s: float
    evaluation_host_s: float

    def training(self, episodes: int, n_envs: int) -> float:
        """Return the cost of a run beside its sampled evaluation, in evaluation hosts, greedy ones included."""
        return episodes * n_envs * self.training_host_s / self.evaluation_host_s + greedy_hosts(n_envs, n_envs)

    def best(self, episodes: int, n_envs: int) -> int:
        """Return the hosts with the least variance x cost for runs of that budget: whole episodes."""
        return best_hosts(self.components.ratio_high, self.training(episodes, n_envs), n_envs)

    @property
    def next_hosts(self) -> int:
        """Return the hosts with the least variance x cost at its own budget."""
        return self.best(self.episodes, self.n_envs)

    def variance_times(self, hosts: int) -> float:
        """Return the variance of an endpoint over `hosts` hosts, as a multiple of that measured.

        More hosts are promised no more than the lower limit of the noise's share gives them: an estimate without any
        policy variance would promise as little variance as one likes.
        """
        found = self.components
        share = min(found.share_low, 1.0)
        sure = 1.0 - share + share * found.hosts / hosts
        return max(sure, found.variance(hosts) / found.variance(found.hosts))

    def cost_times(self, hosts: int) -> float:
        """Return the cost of a run with `hosts` evaluation hosts, as a multiple of that measured."""
        training = self.training(self.episodes, self.n_envs)
        return (training + hosts) / (training + self.components.hosts)

    @property
    def cost_share(self) -> float:
        """Return the share of the sampled evaluation in what a run cost."""
        hosts = self.components.hosts
        return hosts / (self.training(self.episodes, self.n_envs) + hosts)


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
    version: str  # of esper_ab


class HostChoice(Settings, frozen=True, kw_only=True):
    """How many hosts, and why, as the plan notes it; no reason where the number was asked for."""

    hosts: int
    why: str = ""


_decode = msgspec.json.Decoder(tuple[Shipped, ...]).decode


@cache
def shipped() -> tuple[Shipped, ...]:
    """Return the calibrations that ship with this package."""
    return _decode(files("esper_ab.settings").joinpath(FILE).read_bytes())


def choose_hosts(asked: AskedExperiment, own: EvaluationNoise | None = None) -> HostChoice:
    """Return the number of hosts of every evaluation; `own`: of a calibration that belongs to the experiment."""
    if asked.trainer and asked.eval_hosts == "auto":  # as many as its evaluation returns, which its rehearsal finds out
        return HostChoice(hosts=DEFAULT_HOSTS)
    if asked.eval_hosts != "auto":
        return HostChoice(hosts=asked.eval_hosts)
    if asked.endpoint != "evaluation":
        return _choice(asked.n_envs, "the endpoint is of training episodes")
    budget = f"{asked.episodes} x {asked.n_envs}"
    if own is not None:
        hosts = own.best(asked.episodes, asked.n_envs)
        return _choice(hosts, f"by --calibration, {_expected(own, hosts)}")
    found = _nearest(asked)
    if found is None:
        return _choice(
            asked.n_envs * -(-DEFAULT_HOSTS // asked.n_envs),
            f"the default of {DEFAULT_HOSTS}, in whole turns of all environments: no calibration of {asked.task} at "
            f"about {budget} training episodes of {asked.steps} steps ships; --calibration is one of your own",
        )
    noise, hosts = found.noise, found.noise.best(asked.episodes, asked.n_envs)
    return _choice(
        hosts, f"from {noise.components.runs} earlier pairs {found.groups} on {found.task} with {noise.episodes} x "
        f"{noise.n_envs} training episodes, of {found.date}; {_expected(noise, hosts)}",
    )  # fmt: skip


def _choice(hosts: int, why: str) -> HostChoice:
    return HostChoice(hosts=hosts, why=f"--eval-hosts auto: {counted(hosts, 'episode')} of evaluation per run ({why}).")


def _expected(noise: EvaluationNoise, hosts: int) -> str:
    found = noise.components
    return f"evaluation noise is then about {found.host / hosts / found.variance(hosts):.0%} of the variance of pairs"


def _nearest(asked: AskedExperiment) -> Shipped | None:
    """Return the shipped calibration of the task, slots and steps with the nearest budget; None: none is near."""

    def distance(one: Shipped) -> float:
        times = one.noise.episodes * one.noise.n_envs / (asked.episodes * asked.n_envs)
        return max(times, 1.0 / times)

    same = [one for one in shipped() if (one.task, one.steps) == (asked.task, asked.steps)]
    alike = [one for one in same if asked.slots in ((), one.slots) and distance(one) <= FARTHEST]
    return min(alike, key=distance, default=None)
