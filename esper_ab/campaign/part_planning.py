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
from esper_ab.plan.user_code import sources_on
from esper_ab.settings.eval_episodes import choose_eval_episodes
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kind import settings_of
from esper_ab.settings.resolve import resolve


def needed_bytes(asked_experiment: AskedExperiment, prior_results: PriorResults) -> int:
    """Return how many bytes the directory of an experiment may need."""
    eval_episodes = choose_eval_episodes(asked_experiment, prior_results.noise).eval_episodes
    run_episodes = (
        asked_experiment.episodes * asked_experiment.n_envs
        + eval_episodes
        + greedy_episodes(eval_episodes, asked_experiment.n_envs)
    )
    return expected_bytes(len(asked_experiment.groups) * asked_experiment.seeds * run_episodes)


def plan_on(
    machine: Machine, asked_experiment: AskedExperiment, name: str, prior_results: PriorResults
) -> tuple[Plan, Estimate]:
    """Resolve the experiment `name` on `machine`, and return its plan and estimate.

    If a seed has more runs than may train at the same time, its runs train one after the other, unless a placement is
    requested. If no devices are requested and hosts of growth train on GPUs, the estimate also has the duration on the
    CPU. Raises UsageError if the machine cannot run the experiment or if `prior_results` does not fit.
    """
    if 0 < asked_experiment.max_parallel < len(asked_experiment.groups) and asked_experiment.placement == "auto":
        asked_experiment = msgspec.structs.replace(asked_experiment, placement="sequence")
    if asked_experiment.devices or not machine.names("cuda") or not settings_of(asked_experiment.task).times_on_cpu:
        return _plan_on_devices(machine, asked_experiment, name, prior_results)
    cpu_duration_s: float | None = None
    try:
        cpu_experiment = msgspec.structs.replace(asked_experiment, devices=("cpu",))
        _, cost = _plan_on_devices(machine, cpu_experiment, name, prior_results)
        cpu_duration_s = cost.duration_s
    except UsageError:
        pass  # the CPU cannot run it either, so the error of the GPUs has no remedy to add
    try:
        plan, cost = _plan_on_devices(machine, asked_experiment, name, prior_results)
    except UsageError as error:
        if cpu_duration_s is None:
            raise
        raise UsageError(*error.args, "; to use the CPU, add ", SettingName("devices", ("cpu",))) from None
    if cpu_duration_s is None:
        return plan, cost
    return plan, msgspec.structs.replace(cost, on_cpu_s=cpu_duration_s)


def _plan_on_devices(
    machine: Machine, asked_experiment: AskedExperiment, name: str, prior_results: PriorResults
) -> tuple[Plan, Estimate]:
    """Plan on the requested devices, or else on all devices of the first kind that the machine has."""
    evaluation = choose_eval_episodes(asked_experiment, prior_results.noise)
    experiment = resolve(asked_experiment, machine, name, evaluation.eval_episodes)
    remarks = settings_of(asked_experiment.task).remarks(asked_experiment, experiment, machine)
    if evaluation.why:
        remarks += (evaluation.why,)
    run_sd = None
    if prior_results.calibration is not None:
        from esper_ab.design.calibration_file import check_belongs  # needs scipy, like the calibration itself

        code = provenance.code() | sources_on(machine)
        remarks += check_belongs(prior_results.calibration, experiment, code)
        run_sd = prior_results.calibration.run_sd(experiment.outcome_over, experiment.eval_episodes)
    reward_audit = None
    if prior_results.reward_audit is not None:
        reward_audit, coverage_notes = belonging(prior_results.reward_audit, experiment, machine)
        remarks += coverage_notes
    plan, cost = make_plan(experiment, machine, remarks=remarks, run_sd=run_sd, reward_audit=reward_audit)
    if prior_results.original is not None:
        from esper_ab.plan.pooling import declared  # most launches repeat no experiment

        plan = declared(plan, prior_results.original)
    return plan, cost
