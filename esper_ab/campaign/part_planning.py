"""Plan one part of a campaign on a machine."""

from __future__ import annotations

import msgspec

from esper_ab.campaign.audited_rewards import belonging
from esper_ab.campaign.campaign import PriorResults
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.evaluation import greedy_episodes
from esper_ab.contracts.machine import Machine
from esper_ab.control import provenance
from esper_ab.control.preflight import expected_bytes
from esper_ab.plan.blocks import make_plan
from esper_ab.plan.estimate import Estimate
from esper_ab.plan.plan import Plan
from esper_ab.settings.eval_episodes import choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.resolve import resolve


def needed_bytes(asked: AskedExperiment, prior: PriorResults) -> int:
    """Return how many bytes the directory of an experiment may need."""
    evaluated = choose_eval_episodes(asked, prior.noise).eval_episodes
    per_run = asked.episodes * asked.n_envs + evaluated + greedy_episodes(evaluated, asked.n_envs)
    return expected_bytes(len(asked.groups) * asked.seeds * per_run)


def plan_on(machine: Machine, asked: AskedExperiment, name: str, prior: PriorResults) -> tuple[Plan, Estimate]:
    """Resolve the experiment `name` on `machine`, and return its plan and estimate.

    If a seed has more runs than may train at the same time, its runs train one after the other, unless a placement is
    requested. If no devices are requested and hosts of growth train on GPUs, the estimate also has the duration on the
    CPU. Raises UsageError if the machine cannot run the experiment or if `prior` does not fit.
    """
    if 0 < asked.max_parallel < len(asked.groups) and asked.placement == "auto":
        asked = msgspec.structs.replace(asked, placement="sequence")
    if asked.devices or not machine.names("cuda") or not settings_of(asked.task).times_on_cpu:
        return _plan_on_devices(machine, asked, name, prior)
    on_cpu_s: float | None = None
    try:
        on_cpu = msgspec.structs.replace(asked, devices=("cpu",))
        _, cost = _plan_on_devices(machine, on_cpu, name, prior)
        on_cpu_s = cost.duration_s
    except UsageError:
        pass  # the CPU cannot run it either, so the error of the GPUs has no remedy to add
    try:
        plan, cost = _plan_on_devices(machine, asked, name, prior)
    except UsageError as error:
        if on_cpu_s is None:
            raise
        raise UsageError(*error.args, "; to use the CPU, add ", SettingName("devices", ("cpu",))) from None
    if on_cpu_s is None:
        return plan, cost
    return plan, msgspec.structs.replace(cost, on_cpu_s=on_cpu_s)


def _plan_on_devices(machine: Machine, asked: AskedExperiment, name: str, prior: PriorResults) -> tuple[Plan, Estimate]:
    """Plan on the requested devices, or else on all devices of the first kind that the machine has."""
    evaluation = choose_eval_episodes(asked, prior.noise)
    experiment = resolve(asked, machine, name, evaluation.eval_episodes)
    remarks = settings_of(asked.task).remarks(asked, experiment, machine)
    if evaluation.why:
        remarks += (evaluation.why,)
    run_sd = None
    if prior.calibration is not None:
        from esper_ab.design.calibration_file import check_belongs  # needs scipy, like the calibration itself

        remarks += check_belongs(prior.calibration, experiment, provenance.code())
        run_sd = prior.calibration.run_sd(experiment.outcome_over, experiment.eval_episodes)
    reward_audit = None
    if prior.reward_audit is not None:
        reward_audit, missing = belonging(prior.reward_audit, experiment, machine)
        remarks += missing
    return make_plan(experiment, machine, remarks=remarks, run_sd=run_sd, reward_audit=reward_audit)
